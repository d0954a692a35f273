"""A long queue: it delays nobody else, and its head is found by the index however long it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from console.jobs import queue
from console.jobs.models import Job
from specs.selectors import current_revision
from tests.concurrency.attempting import Worker
from tests.people import Tenant, some_uuid

#: Many rows at once, as if each belonged to a job of the organization itself, with no Spec.
FILL = """
INSERT INTO jobs_job (id, organization_id, number, type, status, pool_id, priority, config_snapshot,
    snapshot_hash, request_sha256, max_retries, retry_count, timeout_seconds, attempt_count, cancel_reason,
    error_code, error_message, log_next_seq, log_bytes, finished_at)
SELECT gen_random_uuid(), %(organization)s, 1000 + n, 'PLAN', %(status)s, %(pool)s, 0, '{}', '', '', 0, 0, 60,
    0, '', '', '', 1, 0, CASE WHEN %(status)s = 'QUEUED' THEN NULL ELSE now() END
FROM generate_series(%(from)s::int, %(to)s::int) AS n
"""


def fill(tenant: Tenant, count: int, *, status: str = "QUEUED", start: int = 0) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            FILL,
            {
                "organization": tenant.organization.pk,
                "pool": tenant.pool.pk,
                "status": status,
                "from": start + 1,
                "to": start + count,
            },
        )


def test_ten_thousand_queued_jobs_of_one_do_not_delay_anothers_single_job(
    ours: Tenant, theirs: Tenant
) -> None:
    """Not even in the number of rows that its claim scans."""
    fill(theirs, 10_000)
    job = ours.request()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobs_job")
    touched = rows_scanned(Worker.of(ours, "explained"))
    assert touched <= 5, f"the claim scanned {touched} rows of jobs_job"
    claim = Worker.of(ours, "worker").take()
    assert claim.job_id == str(job.pk)
    assert Job.objects.filter(organization=theirs.organization, status="QUEUED").count() == 10_000


@pytest.fixture
def long_queue(ours: Tenant) -> Tenant:
    fill(ours, 20_000, status="SUCCESS")
    fill(ours, 20_000, start=20_000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobs_job")
    return ours


def test_the_claim_finds_its_job_by_the_partial_index(long_queue: Tenant) -> None:
    plan = explained(Worker.of(long_queue, "worker"))
    nodes = list(nodes_of(plan))
    scans = [node for node in nodes if node.get("Index Name") == "job_claimable"]
    assert len(scans) == 1, json.dumps(plan, indent=1)
    assert scans[0]["Actual Rows"] <= 2
    assert not [
        node for node in nodes if node["Node Type"] == "Seq Scan" and node["Relation Name"] == "jobs_job"
    ]
    sorts = [node for node in nodes if "Sort" in node["Node Type"]]
    assert all(node["Actual Rows"] <= 1 for node in sorts), "only the heads of the pools are sorted"


def test_the_claim_looks_at_as_many_rows_in_a_long_queue_as_in_a_short_one(
    long_queue: Tenant, theirs: Tenant
) -> None:
    fill(theirs, 3)
    short, long = (rows_scanned(Worker.of(tenant, "worker")) for tenant in (theirs, long_queue))
    assert long <= short + 2


def explained(worker: Worker) -> dict[str, Any]:
    """The plan of a claim, carried out and rolled back."""
    values: dict[str, Any] = {
        "runner": worker.runner.id,
        "organization": worker.runner.organization_id,
        "pools": worker.runner.pool_ids,
        "types": ["PLAN"],
        "key": some_uuid(),
        "credential": None,
        "claim": some_uuid(),
        "event": some_uuid(),
        "lease": 120,
    }
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        try:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {queue.CLAIM}", values)
            (plan,) = cursor.fetchone()
        finally:
            cursor.execute("ROLLBACK")
    return dict(plan[0]["Plan"])


def nodes_of(plan: dict[str, Any]) -> Any:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes_of(child)


def rows_scanned(worker: Worker) -> int:
    """Count the rows of the queue that the claim's scan went through."""
    rows = 0
    for node in nodes_of(explained(worker)):
        if node.get("Relation Name") == "jobs_job" and node.get("Index Name") == "job_claimable":
            rows += int(node["Actual Rows"]) + int(node.get("Rows Removed by Filter", 0))
    return rows


def test_what_is_filled_in_can_really_be_claimed(ours: Tenant) -> None:
    fill(ours, 3)
    assert current_revision(ours.spec).document
    claims = [Worker.of(ours, f"worker-{n}").take() for n in range(3)]
    assert len({claim.job_id for claim in claims}) == 3
