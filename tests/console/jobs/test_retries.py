"""Retries: automatic with growing pauses where that is safe, by a click where a person decides."""

from __future__ import annotations

from datetime import timedelta

import pytest

from console.audit.models import AuditEvent
from console.jobs.attempts import RETRY_BASE_SECONDS, RETRY_MAX_SECONDS, retry_delay
from console.jobs.models import Job
from console.jobs.services import cancel_job, retry_job
from console.jobs.types import KINDS
from console.plans.services import request_deploy
from runner.protocol import JobType
from specs.models import Revision
from tests.console_app import Console, Http, RunnerClient, code_of
from tests.database_clock import let_retry_wait_pass
from tests.people import Tenant, fresh
from tests.plans_made import a_plan

READING = [type for type, kind in KINDS.items() if not kind.changes_infrastructure]
CHANGING = [type for type, kind in KINDS.items() if kind.changes_infrastructure]


@pytest.fixture
def operator(console: Console, ours: Tenant) -> Http:
    return console.person(ours, "operator")


@pytest.mark.parametrize("type", READING)
def test_a_failed_read_goes_back_to_the_queue_and_is_tried_as_often_as_its_type_allows(
    runner: RunnerClient, ours: Tenant, type: JobType
) -> None:
    job = ours.request(type)
    for retry in range(1, KINDS[type].max_retries + 1):
        claim = runner.take_and_start()
        assert runner.fail(claim).json() == {"status": "QUEUED"}
        waiting = fresh(job)
        assert (waiting.status, waiting.retry_count, waiting.started_at, waiting.claimed_at) == (
            "QUEUED",
            retry,
            None,
            None,
        )
        let_retry_wait_pass(job)
    assert runner.fail(runner.take_and_start()).json() == {"status": "FAILED"}
    ended = fresh(job)
    assert (ended.retry_count, ended.attempt_count) == (
        KINDS[type].max_retries,
        KINDS[type].max_retries + 1,
    )
    assert (ended.error_code, ended.error_message) == ("broken", "It broke.")


@pytest.mark.parametrize("type", [type for type in CHANGING if type != JobType.DEPLOY])
def test_a_failed_change_of_infrastructure_stays_failed(
    runner: RunnerClient, ours: Tenant, type: JobType
) -> None:
    job = ours.request(type)
    assert runner.fail(runner.take_and_start()).json() == {"status": "FAILED"}
    assert fresh(job).retry_count == 0


def test_a_fatal_error_is_not_tried_again(runner: RunnerClient, ours: Tenant) -> None:
    job = ours.request()
    claim = runner.take_and_start()
    assert runner.fail(claim, error_code="invalid_configuration", fatal=True).json() == {"status": "FAILED"}
    assert (fresh(job).retry_count, fresh(job).error_code) == (0, "invalid_configuration")


def test_the_pause_doubles_up_to_a_limit_with_bounded_jitter() -> None:
    for retry in range(12):
        longest = min(RETRY_BASE_SECONDS * 2**retry, RETRY_MAX_SECONDS)
        delays = [retry_delay(retry) for _ in range(200)]
        assert all(longest / 2 <= delay <= longest for delay in delays)
        assert len(set(delays)) > 100


def test_the_pause_is_counted_by_the_database(runner: RunnerClient, ours: Tenant) -> None:
    job = ours.request()
    runner.fail(runner.take_and_start())
    attempt, waiting = job.attempts.get(), fresh(job)
    assert attempt.ended_at is not None
    pause = (waiting.run_after - attempt.ended_at).total_seconds()
    assert RETRY_BASE_SECONDS / 2 <= pause <= RETRY_BASE_SECONDS


def test_a_retry_keeps_the_log_going_and_the_history(runner: RunnerClient, ours: Tenant) -> None:
    job = ours.request()
    first = runner.take_and_start()
    runner.log(first, 1, "one", "two")
    runner.fail(first)
    let_retry_wait_pass(job)
    second = runner.take_and_start()
    assert (second.attempt, second.next_log_seq) == (2, 3)
    assert second.snapshot_hash == first.snapshot_hash
    assert [attempt.number for attempt in job.attempts.order_by("number")] == [1, 2]


def test_a_job_that_waits_for_its_retry_is_cancelled_at_once(
    runner: RunnerClient, operator: Http, ours: Tenant
) -> None:
    job = ours.request()
    runner.fail(runner.take_and_start())
    assert operator.post(f"/api/jobs/{job.pk}/cancel").json()["status"] == "CANCELLED"
    let_retry_wait_pass(job)
    assert runner.claim() is None


def test_the_retry_click_makes_a_new_job_of_the_same_snapshot(
    runner: RunnerClient, operator: Http, ours: Tenant
) -> None:
    job = fresh(ours.request(JobType.DESTROY))
    runner.fail(runner.take_and_start())
    document = {**job.config_snapshot, "variables": {"name": "changed"}}
    Revision.objects.create(spec=ours.spec, number=2, message="changed", document=document)

    answer = operator.post(f"/api/jobs/{job.pk}/retry")
    assert answer.status_code == 202
    again = Job.objects.get(pk=answer.json()["id"])
    assert answer.headers["Location"] == f"/api/jobs/{again.pk}"
    assert (again.retry_of_id, again.type, again.status) == (job.pk, "DESTROY", "QUEUED")
    assert (again.config_snapshot, again.snapshot_hash) == (job.config_snapshot, job.snapshot_hash)
    assert fresh(job).status == "FAILED"


def test_who_clicked_retry_is_on_record_and_who_asked_first_stays(ours: Tenant) -> None:
    job = ours.request()
    cancel_job(job=job, requested_by=ours.operator)
    again = retry_job(job=fresh(job), requested_by=ours.second_operator)
    assert again.requested_by == ours.second_operator
    assert fresh(job).requested_by == ours.operator
    assert AuditEvent.objects.get(target_id=again.pk).actor_id == ours.second_operator.pk


def test_a_job_that_has_not_ended_cannot_be_retried(operator: Http, ours: Tenant) -> None:
    job = ours.request()
    answer = operator.post(f"/api/jobs/{job.pk}/retry")
    assert (answer.status_code, code_of(answer)) == (409, "conflict")
    assert "has not ended yet" in answer.json()["detail"]


def test_the_retry_click_respects_the_specs_one_active_job(operator: Http, ours: Tenant) -> None:
    job = ours.request()
    cancel_job(job=job, requested_by=ours.operator)
    ours.request()
    answer = operator.post(f"/api/jobs/{job.pk}/retry")
    assert (answer.status_code, code_of(answer)) == (409, "job_active")


def test_an_old_jobs_wait_does_not_leak_into_the_next_pause(ours: Tenant) -> None:
    """The pause is bounded however old the job is."""
    assert timedelta(seconds=retry_delay(1_000)) <= timedelta(seconds=RETRY_MAX_SECONDS)


def test_a_deploy_is_retried_by_planning_again(ours: Tenant, console: Console) -> None:
    job = request_deploy(plan=a_plan(console, ours), requested_by=ours.operator)
    runner = console.new_runner(ours, "second")
    runner.fail(runner.take_and_start())
    again = retry_job(job=fresh(job), requested_by=ours.operator)
    assert (again.plan_id, again.snapshot_hash, again.retry_of_id) == (None, job.snapshot_hash, job.pk)
