"""The queue's depth, for autoscalers: over HTTP, as Prometheus text, and as the documented SQL."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.db.models.functions import Now
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from console.accounts.services import set_installation_drain, set_organization_drain
from console.jobs.models import Job
from tests.console_app import Console, code_of
from tests.people import Tenant

DOCUMENT = Path(__file__).parents[3] / "docs" / "autoscaling.md"


def documented_queries() -> list[str]:
    return re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


def keda_count(organization: str = "ours", pool: str = "default") -> int:
    """Return the value that KEDA would read."""
    (query,) = [sql for sql in documented_queries() if sql.startswith("SELECT")]
    query = query.replace("'acme'", f"'{organization}'").replace("'default'", f"'{pool}'")
    with connection.cursor() as cursor:
        cursor.execute(query)
        return int(cursor.fetchone()[0])


@pytest.fixture
def busy(console: Console, ours: Tenant) -> Tenant:
    """Three jobs that could start, one that runs, one that waits for its retry, one in another pool."""
    runner = console.new_runner(ours)
    for n in range(5):
        ours.request(spec=ours.new_spec(f"spec-{n}"))
    runner.fail(runner.take_and_start())
    runner.take_and_start()
    ours.request(spec=ours.new_spec("elsewhere", pool=ours.new_pool("second")))
    return ours


def test_the_api_counts_each_pool(console: Console, busy: Tenant) -> None:
    Job.objects.filter(spec__slug="spec-2").update(run_after=Now() - timedelta(seconds=90))
    data = console.person(busy, "viewer").get("/api/organizations/ours/queue").json()["data"]
    default, second = data
    assert 90 <= default.pop("oldest_wait_seconds") < 120
    assert default == {
        "organization": "ours",
        "pool": "default",
        "queued": 3,
        "delayed": 1,
        "running": 1,
        "runners_online": 1,
    }
    assert (second["pool"], second["queued"], second["runners_online"]) == ("second", 1, 0)


def test_another_organizations_depth_is_not_there(console: Console, busy: Tenant, theirs: Tenant) -> None:
    answer = console.person(theirs, "admin").get("/api/organizations/ours/queue")
    assert (answer.status_code, code_of(answer)) == (404, "not_found")
    assert console.anybody().get("/api/organizations/ours/queue").status_code == 401
    assert console.person(theirs, "viewer").get("/api/organizations/theirs/queue").json()["data"] == [
        {
            "organization": "theirs",
            "pool": "default",
            "queued": 0,
            "delayed": 0,
            "running": 0,
            "oldest_wait_seconds": 0.0,
            "runners_online": 0,
        }
    ]


def test_prometheus_reads_every_pool(
    console: Console, busy: Tenant, theirs: Tenant, settings: Settings
) -> None:
    settings.SLIPWAY_METRICS_TOKEN = "a token of the installation's"
    answer = console.with_authorization(f"Bearer {settings.SLIPWAY_METRICS_TOKEN}").get("/metrics")
    assert answer.status_code == 200
    values = {
        (sample.name, sample.labels.get("organization"), sample.labels.get("pool")): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert values["slipway_pool_queued", "ours", "default"] == 3
    assert values["slipway_pool_delayed", "ours", "default"] == 1
    assert values["slipway_pool_running", "ours", "default"] == 1
    assert values["slipway_pool_queued", "ours", "second"] == 1
    assert values["slipway_pool_queued", "theirs", "default"] == 0
    assert ("slipway_oldest_transaction_seconds", None, None) in values


@pytest.mark.parametrize(("token", "sent"), [("", "Bearer "), ("right", "Bearer wrong"), ("right", "")])
def test_metrics_open_with_the_installations_token_only(
    console: Console, transactional_db: None, settings: Settings, token: str, sent: str
) -> None:
    settings.SLIPWAY_METRICS_TOKEN = token
    assert console.with_authorization(sent).get("/metrics").status_code == 401


def test_a_persons_token_does_not_open_the_metrics(
    console: Console, ours: Tenant, settings: Settings
) -> None:
    settings.SLIPWAY_METRICS_TOKEN = "right"
    assert console.person(ours, "admin").get("/metrics").status_code == 401


def test_the_documented_query_counts_the_same(console: Console, busy: Tenant, theirs: Tenant) -> None:
    depths = console.person(busy, "viewer").get("/api/organizations/ours/queue").json()["data"]
    assert {depth["pool"]: depth["queued"] for depth in depths} == {
        "default": keda_count(),
        "second": keda_count(pool="second"),
    }
    assert (keda_count(), keda_count(pool="second"), keda_count("theirs")) == (3, 1, 0)


@pytest.mark.parametrize("whole", [False, True], ids=["organization", "installation"])
def test_what_is_drained_needs_no_runner(console: Console, busy: Tenant, whole: bool) -> None:
    if whole:
        set_installation_drain(draining=True)
    else:
        set_organization_drain(organization=busy.organization, draining=True, requested_by=busy.admin)
    depth = console.person(busy, "viewer").get("/api/organizations/ours/queue").json()["data"][0]
    assert (depth["queued"], depth["running"]) == (0, 1)
    assert keda_count() == 0


def test_the_documented_role_may_read_what_its_query_reads(transactional_db: None, busy: Tenant) -> None:
    (grants,) = [sql for sql in documented_queries() if sql.startswith("CREATE ROLE")]
    with connection.cursor() as cursor:
        cursor.execute(grants)
        try:
            cursor.execute("SET ROLE keda")
            assert keda_count() == 3
        finally:
            cursor.execute("RESET ROLE")
            cursor.execute("DROP OWNED BY keda; DROP ROLE keda")
