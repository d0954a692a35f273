"""The plan page: what is risky first, groups, filters, all of a long plan, and no secret."""

from __future__ import annotations

import html
import json
import re

import pytest
from django.test import Client
from django.urls import reverse

from console.jobs.intent import as_refresh_only
from console.jobs.services import current_document, request_job
from console.plans.models import Plan
from console.plans.review import PAGE_ROWS
from runner.protocol import JobType
from tests.console.plans.review import Person, document, plan_made_by, resource, revise, set_guard
from tests.console_app import Console
from tests.page_source import source_of
from tests.people import Tenant
from tests.plans_made import a_plan


class Reader:
    """Somebody who reads a plan, with filters in the address."""

    def __init__(self, tenant: Tenant) -> None:
        self._client = Client()
        self._client.force_login(tenant.viewer, backend="django.contrib.auth.backends.ModelBackend")

    def reads(self, plan: Plan, query: str = "", *, part: bool = False) -> str:
        address = reverse("plan", args=[plan.organization.slug, plan.spec.slug, plan.number])
        headers = {"HX-Request": "true"} if part else {}
        answer = self._client.get(f"{address}?{query}", headers=headers)
        assert answer.status_code == 200
        return source_of(answer)

    def raw(self, plan: Plan) -> str:
        address = reverse("plan-raw", args=[plan.organization.slug, plan.spec.slug, plan.number])
        answer = self._client.get(address)
        assert answer["Content-Type"] == "application/json"
        return answer.content.decode()


@pytest.fixture
def reader(ours: Tenant) -> Reader:
    return Reader(ours)


def addresses(page: str) -> list[str]:
    return [html.unescape(address) for address in re.findall(r'data-address="([^"]*)"', page)]


def test_what_cannot_be_undone_comes_first_and_guarded_types_before_all(
    console: Console, ours: Tenant, reader: Reader
) -> None:
    set_guard(ours.spec, types=["terraform_d*"])
    plan = a_plan(
        console,
        ours,
        json=document(
            resource("terraform_data.new", "create"),
            resource("other_thing.gone", "delete"),
            resource("other_thing.changed", "update"),
            resource("terraform_data.again", "delete", "create"),
        ),
    )
    page = reader.reads(plan)
    assert addresses(page) == [
        "terraform_data.again",
        "other_thing.gone",
        "other_thing.changed",
        "terraform_data.new",
    ]
    assert page.count("guarded type</span>") == 1
    assert "because" not in page.split("terraform_data.new")[1].split("</details>")[0]


def test_resources_are_grouped_by_module_and_found_by_text_action_and_module(
    console: Console, ours: Tenant, reader: Reader
) -> None:
    inside = {**resource("module.net.terraform_data.a", "create"), "module_address": "module.net"}
    plan = a_plan(
        console,
        ours,
        json=document(
            resource("terraform_data.b", "create"), inside, resource("terraform_data.old", "delete")
        ),
    )
    page = reader.reads(plan)
    assert 'class="module mono">module.net</h3>' in page
    assert "root module" in page
    assert addresses(reader.reads(plan, "q=DATA.B")) == ["terraform_data.b"]
    assert addresses(reader.reads(plan, "action=delete")) == ["terraform_data.old"]
    assert addresses(reader.reads(plan, "module=module.net")) == ["module.net.terraform_data.a"]
    assert sorted(addresses(reader.reads(plan, "module="))) == ["terraform_data.b", "terraform_data.old"]
    nothing = reader.reads(plan, "q=nowhere&action=create")
    assert "No resources match this filter" in nothing
    assert "0 of 3 resources" in nothing
    assert len(addresses(reader.reads(plan, "action=nonsense&from=-1"))) == 3


def test_a_long_plan_comes_in_parts_and_none_is_left_out(
    console: Console, ours: Tenant, reader: Reader
) -> None:
    names = [f"terraform_data.r{number:03}" for number in range(2 * PAGE_ROWS + 5)]
    plan = a_plan(console, ours, json=document(*(resource(name, "create") for name in names)))
    page, seen = reader.reads(plan), []
    while True:
        seen += addresses(page)
        more = re.search(r'hx-get="[^"?]*\?([^"]*)"[^>]*>Show more', page)
        if more is None:
            break
        page = reader.reads(plan, html.unescape(more.group(1)), part=True)
        assert "<html" not in page
        assert ", continued" in page
    assert seen == names
    assert "Apply" not in page


def test_the_button_says_exactly_what_it_does(console: Console, ours: Tenant) -> None:
    plan = a_plan(
        console,
        ours,
        json=document(resource("terraform_data.a", "create"), resource("terraform_data.b", "update")),
    )
    page = Person(ours.operator).sees(plan)
    assert "Apply 2 changes</button>" in page
    assert "Runs the saved file of plan #1, once, on pool default: changes 1 and adds 1 resource." in page
    assert "Apply 2 changes</button>" not in Person(ours.viewer).sees(plan)


def test_a_stale_plan_lists_everything_that_changed(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours)
    revise(ours.spec, files={"main.tf": "", "new.tf": ""})
    page = html.unescape(Person(ours.operator).sees(plan))
    assert "This plan is stale" in page
    for changed in ('file "main.tf" changed', 'file "new.tf" was added', 'file "outputs.tf" was removed'):
        assert f"<li>{changed}</li>" in page
    assert "Plan again</button>" in page


def test_a_refresh_only_plan_shows_what_others_did(console: Console, ours: Tenant) -> None:
    def look(drifted: list[object]) -> str:
        snapshot = as_refresh_only(current_document(ours.spec))
        job = request_job(spec=ours.spec, type=JobType.PLAN, requested_by=ours.operator, snapshot=snapshot)
        body = json.dumps({"resource_changes": [], "resource_drift": drifted}).encode()
        return Person(ours.viewer).sees(plan_made_by(console, ours, job, json=body))

    change = {"before": {"size": 1}, "after": {"size": 2}}
    page = look([resource("terraform_data.server", "update", change=change)])
    assert "1 resource was changed or removed outside of Terraform." in page
    assert addresses(page) == ["terraform_data.server"]
    assert "<strong>No changes</strong>" not in page
    assert "No changes outside of Terraform" in look([])


def test_the_raw_plan_is_masked_once_more(console: Console, ours: Tenant, reader: Reader) -> None:
    change = {"after": {"password": "hunter2hunter2"}, "after_sensitive": {"password": True}}
    values = {"values": {"password": "hunter2hunter2"}, "sensitive_values": {"password": True}}
    body = document(
        resource("terraform_data.one", "create", change=change),
        planned_values={
            "outputs": {"secret": {"sensitive": True, "value": "hunter2hunter2"}},
            "root_module": {"child_modules": [{"resources": [values]}]},
        },
        output_changes={"secret": {**change, "actions": ["create"]}},
        variables={"token": {"value": "hunter2hunter2"}},
        configuration={
            "root_module": {"variables": {"token": {"sensitive": True, "default": "hunter2hunter2"}}}
        },
    )
    raw = reader.raw(a_plan(console, ours, json=body))
    assert "hunter2" not in raw
    assert raw.count("(sensitive)") == 6


def test_hostile_and_huge_values_are_shown_as_text_and_in_part(
    console: Console, ours: Tenant, reader: Reader
) -> None:
    huge, hostile = "x" * 10_000_000, "<img src=x onerror=alert(1)>\u202egnp"
    change = {"after": {"huge": huge, "hostile": hostile}}
    attributes = {
        **resource("terraform_data.one", "create", change=change),
        "address": "<b>\u202e",
        "module_address": "module.<i>",
    }
    page = reader.reads(a_plan(console, ours, json=document(attributes)))
    assert len(page) < 60_000
    assert "9,998,002 more characters" in page
    assert "<img" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "\u202e" not in re.sub(r'(data-address|value)="[^"]*"', "", page)


def test_what_is_not_known_or_not_shown_is_not_written_as_a_text(
    console: Console, ours: Tenant, reader: Reader
) -> None:
    change = {
        "after": {"zones": ["a", None], "login": {"user": "me", "word": "hunter2"}, "said": '"(sensitive)"'},
        "after_unknown": {"zones": [False, True]},
        "after_sensitive": {"login": {"word": True}},
    }
    page = html.unescape(
        reader.reads(
            a_plan(console, ours, json=document(resource("terraform_data.one", "create", change=change)))
        )
    )
    assert '["a", (known after apply)]' in page
    assert '{"user": "me", "word": (sensitive)}' in page
    assert r'"\"(sensitive)\""' in page


def test_a_nul_in_an_attribute_is_replaced(console: Console, ours: Tenant) -> None:
    creation = resource("terraform_data.one", "create", change={"after": {"input": "a\0b"}})
    plan = a_plan(console, ours, json=document(creation))
    (attribute,) = [candidate for candidate in plan.changes[0]["attributes"] if candidate["name"] == "input"]
    assert attribute["after"] == "a\N{REPLACEMENT CHARACTER}b"


def test_a_plan_in_which_nothing_changes_says_so(console: Console, ours: Tenant, reader: Reader) -> None:
    page = reader.reads(a_plan(console, ours, json=b'{"resource_changes":[]}'))
    assert "<strong>No changes</strong>" in page
    assert 'id="plan-filter"' not in page
