"""Timeouts: asked to stop first, fenced when it does not, and never tried again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from console.audit.models import AuditEvent
from console.janitor.services import (
    TIMEOUT_GRACE_SECONDS,
    end_timed_out_jobs,
    request_timeouts,
    run_once,
    take_back_lost_jobs,
)
from console.jobs.models import Job
from console.jobs.services import cancel_job
from console.jobs.types import KINDS
from runner.protocol import Claim, JobType
from tests.console_app import Console, RunnerClient, code_of
from tests.database_clock import (
    a_console_has_been_serving,
    let_lease_run_out,
    let_retry_wait_pass,
    let_time_pass_since_claim,
)
from tests.people import Tenant, fresh


def overdue(runner: RunnerClient, ours: Tenant, type: JobType = JobType.PLAN) -> tuple[Job, Claim]:
    job = ours.request(type)
    claim = runner.take()
    if type != JobType.DEPLOY:
        runner.start(claim)
    let_time_pass_since_claim(job, timedelta(seconds=KINDS[type].timeout_seconds + 1))
    return job, claim


def let_grace_pass(job: Job) -> None:
    requested_at = Now() - timedelta(seconds=TIMEOUT_GRACE_SECONDS + 1)
    Job.objects.filter(pk=job.pk).update(cancel_requested_at=requested_at)


@pytest.mark.parametrize("type", list(JobType))
def test_after_its_time_it_is_asked_to_stop_through_its_heartbeat(
    runner: RunnerClient, ours: Tenant, type: JobType
) -> None:
    job, claim = overdue(runner, ours, type)
    assert runner.beat(claim).cancel is None
    assert request_timeouts() == 1
    assert runner.beat(claim).cancel == "timeout"
    assert request_timeouts() == 0
    event = AuditEvent.objects.get(target_id=job.pk, action="job.timeout_requested")
    assert event.actor_kind == "system"


def test_within_its_time_it_is_left_alone(runner: RunnerClient, ours: Tenant) -> None:
    job = ours.request()
    claim = runner.take_and_start()
    let_time_pass_since_claim(job, timedelta(seconds=KINDS[JobType.PLAN].timeout_seconds - 30))
    assert request_timeouts() == 0
    assert runner.beat(claim).cancel is None


@pytest.mark.parametrize("type", list(JobType))
def test_what_does_not_stop_is_fenced_and_cancelled_whatever_its_type(
    runner: RunnerClient, ours: Tenant, type: JobType
) -> None:
    job, claim = overdue(runner, ours, type)
    request_timeouts()
    assert end_timed_out_jobs() == 0, "it has a grace period first"
    let_grace_pass(job)
    assert end_timed_out_jobs() == 1
    job = fresh(job)
    assert (job.status, job.error_code) == ("CANCELLED", "timeout_exceeded")
    assert "timeout exceeded" in job.error_message.lower()
    assert (job.attempts.get().outcome, job.attempts.get().orphaned) == ("cancelled", True)
    assert code_of(runner.heartbeat(claim)) == "stale_claim"
    assert runner.claim() is None, "it is never tried again"


def test_a_failure_after_the_timeout_asked_is_the_timeout(runner: RunnerClient, ours: Tenant) -> None:
    job, claim = overdue(runner, ours)
    request_timeouts()
    assert runner.fail(claim).json() == {"status": "CANCELLED"}
    assert fresh(job).error_code == "timeout_exceeded"


def test_a_lost_attempt_after_the_timeout_asked_is_the_timeout(runner: RunnerClient, ours: Tenant) -> None:
    job, _ = overdue(runner, ours)
    request_timeouts()
    let_lease_run_out(job)
    take_back_lost_jobs()
    assert (fresh(job).status, fresh(job).error_code) == ("CANCELLED", "timeout_exceeded")


def test_a_job_that_ignores_a_persons_cancel_is_ended_by_its_timeout(
    runner: RunnerClient, ours: Tenant
) -> None:
    """Otherwise a runner that beats and does not stop would keep the Spec for ever."""
    job, _ = overdue(runner, ours)
    cancel_job(job=job, requested_by=ours.operator)
    let_grace_pass(job)
    assert end_timed_out_jobs() == 1
    job = fresh(job)
    assert (job.status, job.error_code, job.cancelled_by) == ("CANCELLED", "cancelled", ours.operator)


def test_an_overdue_job_has_its_grace_also_after_the_janitor_was_away(
    runner: RunnerClient, ours: Tenant
) -> None:
    a_console_has_been_serving()
    job, claim = overdue(runner, ours)
    let_time_pass_since_claim(job, timedelta(days=1))
    run_once()
    assert fresh(job).status == "PROCESSING"
    assert runner.beat(claim).cancel == "timeout"


def test_the_time_counts_from_the_claim_of_each_attempt(
    console: Console, runner: RunnerClient, ours: Tenant
) -> None:
    job = ours.request()
    claim = runner.take_and_start()
    let_time_pass_since_claim(job, timedelta(minutes=59))
    runner.fail(claim)
    let_retry_wait_pass(job)
    runner.take_and_start()
    assert request_timeouts() == 0


def test_a_job_that_waits_has_no_timeout(ours: Tenant) -> None:
    job = ours.request()
    Job.objects.filter(pk=job.pk).update(created_at=Now() - timedelta(days=30))
    assert request_timeouts() == 0
    assert end_timed_out_jobs() == 0
