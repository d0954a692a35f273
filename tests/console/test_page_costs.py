"""What pages cost: a number of queries that does not grow with what is there, and few bytes on the wire."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from console.jobs.models import Job
from console.plans.models import Plan
from tests.console.plans.review import document, resource
from tests.console_app import Console
from tests.people import Tenant
from tests.plans_made import a_plan


def client_of(tenant: Tenant) -> Client:
    client = Client(headers={"Accept-Encoding": "gzip"})
    client.force_login(tenant.operator, backend="django.contrib.auth.backends.ModelBackend")
    return client


def queries_of(client: Client, address: str) -> int:
    asked: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        asked.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        assert client.get(address).status_code == 200
    return len(asked)


def a_plan_of(console: Console, ours: Tenant, *, name: str, resources: int) -> Plan:
    body = document(*(resource(f"terraform_data.r{n}", "create") for n in range(resources)))
    return a_plan(console, ours, spec=ours.new_spec(name), json=body)


@pytest.fixture
def small_and_large(console: Console, ours: Tenant) -> tuple[Plan, Plan]:
    return (
        a_plan_of(console, ours, name="small", resources=3),
        a_plan_of(console, ours, name="large", resources=400),
    )


def test_a_plan_of_four_hundred_costs_as_many_queries_as_one_of_three(
    ours: Tenant, small_and_large: tuple[Plan, Plan]
) -> None:
    client = client_of(ours)
    asked = [
        queries_of(client, reverse("plan", args=["ours", plan.spec.slug, plan.number]))
        for plan in small_and_large
    ]
    assert asked[0] == asked[1] <= 20


def test_a_job_with_a_long_log_costs_as_many_queries_as_one_with_a_short_one(
    console: Console, ours: Tenant
) -> None:
    client, asked = client_of(ours), []
    runner = console.new_runner(ours)
    for batches in (1, 20):
        ours.request(spec=ours.new_spec(f"spec-{batches}"))
        claim = runner.take_and_start()
        for batch in range(batches):
            runner.log(claim, 1 + 100 * batch, *["a line"] * 100)
        runner.succeed(claim)
        number = Job.objects.get(pk=claim.job_id).number
        asked.append(queries_of(client, reverse("job", args=["ours", number])))
    assert asked[0] == asked[1] <= 16


@pytest.mark.parametrize("page", ["specs", "jobs"])
def test_a_list_costs_as_many_queries_with_one_as_with_forty(ours: Tenant, page: str) -> None:
    client, asked = client_of(ours), []
    for count in (1, 39):
        for number in range(count):
            ours.request(spec=ours.new_spec(f"spec-{count}-{number}"))
        asked.append(queries_of(client, reverse(page, args=["ours"])))
    assert asked[0] == asked[1] <= 16


def test_the_job_page_with_all_it_loads_is_under_150_kb(
    ours: Tenant, small_and_large: tuple[Plan, Plan]
) -> None:
    """Over the wire, compressed; the job applies the large plan, so its resources are in the page."""
    client = client_of(ours)
    job = Job.objects.get(pk=ours.request(spec=ours.new_spec("applying")).pk)
    Job.objects.filter(pk=job.pk).update(plan=small_and_large[1])
    page = client.get(reverse("job", args=["ours", job.number]))
    assert page["Content-Encoding"] == "gzip"
    text = gzip.decompress(page.content).decode()
    assert text.count("data-address=") == 300
    loaded: dict[str, int] = {"page": len(page.content)}
    graph = client.get(reverse("job-graph", args=["ours", job.number]))
    loaded["graph"] = len(graph.content)
    load(client, loaded, re.findall(r'(?:src|href)="(/static/[^"#]+)', text))
    assert len(loaded) > 20, "scripts are found through scripts"
    assert sum(loaded.values()) < 150 * 1024, loaded


def load(client: Client, loaded: dict[str, int], addresses: list[str]) -> None:
    """Fetch these and what they import, once each."""
    for address in addresses:
        if address in loaded:
            continue
        answer = client.get(address)
        assert answer.status_code == 200, address
        with closing(answer):
            body = body_of(answer)
        loaded[address] = len(body)
        if address.endswith(".js") and answer.get("Content-Encoding") == "gzip":
            folder = address.rpartition("/")[0]
            imported = re.findall(r'(?:from|import) "\./([^"]+)"', gzip.decompress(body).decode())
            load(client, loaded, [f"{folder}/{name}" for name in imported])


def body_of(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else bytes(answer.content)


def test_what_gains_nothing_or_comes_bit_by_bit_is_sent_as_it_is(console: Console, ours: Tenant) -> None:
    client = client_of(ours)
    style = client.get("/static/css/base.css")
    assert style["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in style["Vary"]
    plain = Client(headers={"Accept-Encoding": "identity"}).get("/static/css/base.css")
    assert "Content-Encoding" not in plain
    with closing(plain):
        assert body_of(plain) == gzip.decompress(style.content)
    unchanged = client.get("/static/css/base.css", headers={"If-Modified-Since": style["Last-Modified"]})
    assert unchanged.status_code == 304
    log = client.get(reverse("job-log", args=["ours", ours.request().number]))
    assert log.streaming
    assert "Content-Encoding" not in log
