"""The effect of a lost attempt on every type of job; only lost ones are taken back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from console.audit.models import AuditEvent
from console.janitor.services import SILENT_SECONDS, run_once, take_back_lost_jobs
from console.jobs.models import Attempt, Job, JobClaim
from console.jobs.services import cancel_job
from console.jobs.types import KINDS
from runner.protocol import JobType
from tests.console_app import Console
from tests.database_clock import a_console_has_been_serving, let_lease_run_out, let_retry_wait_pass
from tests.people import Tenant, fresh

every_type = pytest.mark.parametrize("type", list(JobType))


def under_way(console: Console, ours: Tenant, type: JobType) -> Job:
    """A job that is PROCESSING. A DEPLOY needs no plan here: only its loss matters."""
    job = ours.request(type)
    claim = console.new_runner(ours, f"runner-{job.number}").take()
    Job.objects.filter(pk=job.pk).update(status="PROCESSING", started_at=Now())
    Attempt.objects.filter(pk=claim.claim_id).update(started_at=Now())
    return job


@every_type
def test_lost_before_it_began_it_goes_back_and_costs_no_retry(
    console: Console, ours: Tenant, type: JobType
) -> None:
    job = ours.request(type)
    console.new_runner(ours, "lost").take()
    let_lease_run_out(job)
    assert take_back_lost_jobs() == 1
    job = fresh(job)
    assert (job.status, job.retry_count, job.claimed_at) == ("QUEUED", 0, None)
    assert console.new_runner(ours, "next").take().attempt == 2
    first = job.attempts.get(number=1)
    assert (first.outcome, first.orphaned) == ("lost", True)


@every_type
def test_lost_while_it_ran_it_is_retried_only_if_it_changes_nothing(
    console: Console, ours: Tenant, type: JobType
) -> None:
    job = under_way(console, ours, type)
    let_lease_run_out(job)
    assert take_back_lost_jobs() == 1
    job = fresh(job)
    if KINDS[type].changes_infrastructure:
        assert (job.status, job.error_code) == ("FAILED", "runner_lost")
        assert "infrastructure may have changed" in job.error_message
        assert job.finished_at is not None
    else:
        assert (job.status, job.retry_count) == ("QUEUED", 1)
        assert job.run_after > job.created_at
    assert job.attempts.get().orphaned


@pytest.mark.parametrize("type", [type for type in JobType if not KINDS[type].changes_infrastructure])
def test_lost_too_often_it_fails(console: Console, ours: Tenant, type: JobType) -> None:
    job = under_way(console, ours, type)
    Job.objects.update(retry_count=KINDS[type].max_retries)
    let_lease_run_out(job)
    take_back_lost_jobs()
    job = fresh(job)
    assert (job.status, job.error_code) == ("FAILED", "runner_lost")
    assert "no retries are left" in job.error_message


@every_type
@pytest.mark.parametrize("started", [False, True], ids=["claimed", "processing"])
def test_lost_after_a_person_cancelled_it_is_cancelled(
    console: Console, ours: Tenant, type: JobType, started: bool
) -> None:
    if started:
        job = under_way(console, ours, type)
    else:
        job = ours.request(type)
        console.new_runner(ours).take()
    cancel_job(job=job, requested_by=ours.operator)
    let_lease_run_out(job)
    take_back_lost_jobs()
    job = fresh(job)
    assert (job.status, job.error_code, job.cancelled_by) == ("CANCELLED", "cancelled", ours.operator)


def test_a_lease_that_runs_on_is_left_alone(console: Console, ours: Tenant) -> None:
    job = under_way(console, ours, JobType.PLAN)
    assert take_back_lost_jobs() == 0
    assert fresh(job).status == "PROCESSING"


def test_silent_for_five_minutes_it_is_lost_whatever_its_lease_says(console: Console, ours: Tenant) -> None:
    """An installation may have given leases of an hour."""
    job = under_way(console, ours, JobType.DESTROY)
    JobClaim.objects.update(
        heartbeat_at=Now() - timedelta(seconds=SILENT_SECONDS + 1), expires_at=Now() + timedelta(hours=1)
    )
    assert take_back_lost_jobs() == 1
    assert (fresh(job).status, fresh(job).error_code) == ("FAILED", "runner_lost")


@pytest.mark.parametrize("sign", ["heartbeat_at", "log_at"])
def test_a_heartbeat_or_a_log_line_is_a_sign_of_life(console: Console, ours: Tenant, sign: str) -> None:
    under_way(console, ours, JobType.PLAN)
    JobClaim.objects.update(
        heartbeat_at=Now() - timedelta(minutes=10),
        log_at=Now() - timedelta(minutes=10),
        expires_at=Now() + timedelta(hours=1),
    )
    JobClaim.objects.update(**{sign: Now() - timedelta(minutes=4)})
    assert take_back_lost_jobs() == 0


def test_a_claimed_job_may_be_silent_as_long_as_its_lease(console: Console, ours: Tenant) -> None:
    ours.request()
    console.new_runner(ours).take()
    JobClaim.objects.update(heartbeat_at=Now() - timedelta(minutes=10), expires_at=Now() + timedelta(hours=1))
    assert take_back_lost_jobs() == 0


def test_the_janitors_own_clock_does_not_matter(
    console: Console, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_console_has_been_serving()
    job = under_way(console, ours, JobType.PLAN)
    now = timezone.now
    for hours in (-1, 1):
        monkeypatch.setattr(timezone, "now", lambda hours=hours: now() + timedelta(hours=hours))
        run_once()
        assert fresh(job).status == "PROCESSING"
    let_lease_run_out(job)
    monkeypatch.setattr(timezone, "now", lambda: now() - timedelta(hours=1))
    run_once()
    assert fresh(job).status == "QUEUED"


def test_two_looks_at_once_take_each_claim_back_once(console: Console, ours: Tenant) -> None:
    jobs = []
    for n in range(10):
        jobs.append(ours.request(spec=ours.new_spec(f"spec-{n}")))
        console.new_runner(ours, f"runner-{n}").take()
        let_lease_run_out(jobs[-1])

    def look_once(_: int) -> int:
        try:
            return take_back_lost_jobs()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(look_once, range(4))) == 10
    assert AuditEvent.objects.filter(action="job.requeued").count() == 10
    assert set(Job.objects.values_list("status", "attempt_count")) == {("QUEUED", 1)}


def test_the_log_of_a_lost_attempt_stays_and_the_next_goes_on_after_it(
    console: Console, ours: Tenant
) -> None:
    job, lost = ours.request(), console.new_runner(ours, "lost")
    claim = lost.take_and_start()
    lost.log(claim, 1, "one", "two")
    let_lease_run_out(job)
    take_back_lost_jobs()
    let_retry_wait_pass(job)
    assert console.new_runner(ours, "next").take().next_log_seq == 3
