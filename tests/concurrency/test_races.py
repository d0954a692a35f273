"""Two who act on one job at the same moment, with real commits: one wins, and nothing is half done."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from console.audit.models import AuditEvent
from console.errors import JobFinal, MoveRefused, StaleClaim
from console.janitor.services import end_timed_out_jobs, request_timeouts, take_back_lost_jobs
from console.jobs.models import Job, JobClaim
from console.jobs.services import cancel_job
from runner.protocol import JobType
from tests.concurrency.attempting import Worker
from tests.concurrency.threads import outcomes, race
from tests.database_clock import let_lease_run_out, let_retry_wait_pass, let_time_pass_since_claim
from tests.people import Tenant, fresh

ROUNDS = 8
many_rounds = pytest.mark.parametrize("round", range(ROUNDS))

ENDS = ("job.succeeded", "job.failed", "job.cancelled")


@pytest.fixture
def worker(ours: Tenant) -> Worker:
    return Worker.of(ours, "worker")


def assert_consistent(job: Job) -> None:
    """A claim stands exactly while a runner has the job, and at most one ending was recorded."""
    job = fresh(job)
    claimed = JobClaim.objects.filter(job=job).exists()
    assert claimed == (job.status in ("CLAIMED", "PROCESSING")), (job.status, claimed)
    ends = AuditEvent.objects.filter(target_id=job.pk, action__in=ENDS).count()
    assert ends == int(job.is_final), (job.status, ends)
    assert not (job.status == "QUEUED" and job.cancel_requested_at), "a cancelled job was queued again"


@many_rounds
def test_cancel_against_claim(ours: Tenant, worker: Worker, round: int) -> None:
    job = ours.request()
    claim, _ = race(worker.claim, lambda: _cancelled(job, ours))
    assert_consistent(job)
    if claim is None:
        assert fresh(job).status == "CANCELLED"
    else:
        assert worker.beat(claim) == "person"
        assert worker.report(claim, "CANCELLED") == "CANCELLED"


@many_rounds
def test_cancel_against_finish(ours: Tenant, worker: Worker, round: int) -> None:
    job = ours.request(JobType.DESTROY)
    claim = worker.take_and_start()
    finished, cancelled = outcomes(
        [
            lambda: worker.report(claim, "SUCCESS"),
            lambda: cancel_job(job=job, requested_by=ours.operator),
        ],
        JobFinal,
    )
    assert finished
    assert fresh(job).status == "SUCCESS"
    assert (fresh(job).cancelled_by is not None) == cancelled
    assert_consistent(job)


@many_rounds
def test_force_cancel_against_finish(ours: Tenant, worker: Worker, round: int) -> None:
    job = ours.request(JobType.DESTROY)
    claim = worker.take_and_start()
    finished, _ = outcomes(
        [
            lambda: worker.report(claim, "SUCCESS"),
            lambda: cancel_job(job=job, requested_by=ours.operator, force=True),
        ],
        JobFinal,
        StaleClaim,
    )
    assert fresh(job).status == ("SUCCESS" if finished else "CANCELLED")
    assert_consistent(job)


@many_rounds
def test_cancel_against_a_failure_that_would_be_retried(ours: Tenant, worker: Worker, round: int) -> None:
    job = ours.request(JobType.PLAN)
    claim = worker.take_and_start()
    race(
        lambda: worker.report(claim, "FAILED", error_code="broken"),
        lambda: cancel_job(job=job, requested_by=ours.operator),
    )
    assert fresh(job).status == "CANCELLED"
    assert fresh(job).cancelled_by == ours.operator
    assert_consistent(job)


@many_rounds
def test_cancel_against_the_claim_of_a_retry(ours: Tenant, worker: Worker, round: int) -> None:
    job = ours.request()
    worker.report(worker.take_and_start(), "FAILED")
    let_retry_wait_pass(job)
    claim, _ = race(worker.claim, lambda: cancel_job(job=job, requested_by=ours.operator))
    assert_consistent(job)
    assert (claim is None) == (fresh(job).status == "CANCELLED")


@many_rounds
def test_cancel_against_timeout(ours: Tenant, worker: Worker, round: int) -> None:
    job = ours.request()
    claim = worker.take_and_start()
    let_time_pass_since_claim(job, timedelta(hours=2))
    race(request_timeouts, lambda: cancel_job(job=job, requested_by=ours.operator))
    reason = fresh(job).cancel_reason
    assert worker.beat(claim) == reason
    Job.objects.update(cancel_requested_at=Now() - timedelta(minutes=5))
    race(end_timed_out_jobs, lambda: _ignoring_the_end(job, ours))
    job = fresh(job)
    assert (job.status, job.cancelled_by) == ("CANCELLED", ours.operator)
    assert job.error_code == {"person": "cancelled", "timeout": "timeout_exceeded"}[reason]
    assert_consistent(job)


def _ignoring_the_end(job: Job, ours: Tenant) -> int:
    outcomes([lambda: cancel_job(job=job, requested_by=ours.second_operator)], JobFinal)
    return 0


@many_rounds
def test_cancel_against_start(ours: Tenant, worker: Worker, round: int) -> None:
    job = ours.request()
    claim = worker.take()
    race(lambda: worker.start(claim), lambda: _cancelled(job, ours))
    assert fresh(job).status == "PROCESSING"
    assert worker.beat(claim) == "person"
    assert_consistent(job)


def _cancelled(job: Job, ours: Tenant) -> None:
    cancel_job(job=job, requested_by=ours.operator)


@many_rounds
def test_force_cancel_against_start(ours: Tenant, worker: Worker, round: int) -> None:
    job = ours.request()
    claim = worker.take()
    outcomes(
        [
            lambda: worker.start(claim),
            lambda: cancel_job(job=job, requested_by=ours.operator, force=True),
        ],
        StaleClaim,
        MoveRefused,
    )
    assert fresh(job).status == "CANCELLED"
    assert_consistent(job)


@many_rounds
@pytest.mark.parametrize("type", [JobType.PLAN, JobType.DESTROY])
def test_janitor_against_completer(ours: Tenant, worker: Worker, type: JobType, round: int) -> None:
    job = ours.request(type)
    claim = worker.take_and_start()
    let_lease_run_out(job)
    finished, _ = outcomes([lambda: worker.report(claim, "SUCCESS"), take_back_lost_jobs], StaleClaim)
    if finished:
        assert fresh(job).status == "SUCCESS"
        assert job.attempts.get().outcome == "succeeded"
    else:
        assert fresh(job).status == ("QUEUED" if type == JobType.PLAN else "FAILED")
        assert job.attempts.get().outcome == "lost"
    assert_consistent(job)


def test_the_janitor_before_the_completer_wins(ours: Tenant, worker: Worker) -> None:
    job = ours.request(JobType.DESTROY)
    claim = worker.take_and_start()
    let_lease_run_out(job)
    assert take_back_lost_jobs() == 1
    with pytest.raises(StaleClaim):
        worker.report(claim, "SUCCESS")
    assert (fresh(job).status, fresh(job).error_code) == ("FAILED", "runner_lost")


def test_the_completer_before_the_janitor_wins(ours: Tenant, worker: Worker) -> None:
    job = ours.request(JobType.DESTROY)
    claim = worker.take_and_start()
    let_lease_run_out(job)
    assert worker.report(claim, "SUCCESS") == "SUCCESS"
    assert take_back_lost_jobs() == 0
    assert fresh(job).status == "SUCCESS"


@many_rounds
def test_janitor_against_heartbeat(ours: Tenant, worker: Worker, round: int) -> None:
    job = ours.request(JobType.DESTROY)
    claim = worker.take_and_start()
    let_lease_run_out(job)
    beat, _ = outcomes([lambda: worker.beat(claim), take_back_lost_jobs], StaleClaim)
    if fresh(job).status == "PROCESSING":
        assert beat
        assert worker.report(claim, "SUCCESS") == "SUCCESS"
    else:
        assert fresh(job).status == "FAILED"
    assert_consistent(job)


@many_rounds
def test_janitor_against_start(ours: Tenant, worker: Worker, round: int) -> None:
    """A job that was allowed to start is never handed on as one of which nothing ran."""
    job = ours.request(JobType.DESTROY)
    claim = worker.take()
    let_lease_run_out(job)
    started, _ = outcomes([lambda: worker.start(claim), take_back_lost_jobs], StaleClaim, MoveRefused)
    assert fresh(job).status in (("PROCESSING", "FAILED") if started else ("QUEUED",))
    assert_consistent(job)


@many_rounds
def test_start_of_the_old_against_claim_of_the_new(ours: Tenant, worker: Worker, round: int) -> None:
    """The old attempt says PROCESSING while the job is taken back and claimed again."""
    job, second = ours.request(JobType.DESTROY), Worker.of(ours, "second")
    old = worker.take()
    let_lease_run_out(job)

    def hand_on() -> bool:
        take_back_lost_jobs()
        return second.claim() is not None

    started, _ = outcomes([lambda: worker.start(old), hand_on], StaleClaim, MoveRefused)
    claim = JobClaim.objects.filter(job=job).first()
    if claim is not None and claim.runner_id == second.runner.id:
        assert not started
        assert fresh(job).status == "CLAIMED"
    assert_consistent(job)


@many_rounds
def test_a_log_line_against_the_end(ours: Tenant, worker: Worker, round: int) -> None:
    """Accepted lines are in the log, refused ones are not, and the count says which."""
    job = ours.request()
    claim = worker.take_and_start()
    logged, _ = outcomes(
        [lambda: worker.log(claim, 1, "late"), lambda: worker.report(claim, "SUCCESS")], StaleClaim
    )
    assert fresh(job).log_next_seq == (2 if logged else 1)
    assert job.log_chunks.count() == int(logged)
