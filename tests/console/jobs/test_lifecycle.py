"""The life of a job: what Python allows, the database allows, and nothing else."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection
from django.db.models.functions import Now

from console.errors import JobFinal
from console.ids import new_id
from console.jobs import queue
from console.jobs.lifecycle import (
    ACTIVE_STATUSES,
    MOVES,
    Ending,
    is_final,
    sources,
)
from console.jobs.models import Attempt, Job, JobClaim, Outcome
from console.jobs.queue import Actor, AttemptEnd, Held
from console.jobs.services import cancel_job
from console.jobs.types import KINDS
from runner.protocol import FINAL_STATUSES, JobStatus, JobType, LogLevel
from tests.people import Tenant, fresh

STATUSES = list(JobStatus)
#: Whether a claim stands in each status; the move is tried under the conditions that favour it.
CLAIMED_ONES = (JobStatus.CLAIMED, JobStatus.PROCESSING)


def job_in(ours: Tenant, status: JobStatus) -> tuple[Job, Held]:
    """A job in any status with a claim on it, put there without passing through the moves."""
    job = ours.request()
    runner, _ = ours.new_runner()
    held = Held(job.pk, new_id(), runner.pk)
    Attempt.objects.create(
        claim_id=held.claim_id, job=job, number=1, runner=runner, claimed_at=Now(), first_log_seq=1
    )
    JobClaim.objects.create(
        job=job,
        claim_id=held.claim_id,
        claim_key=new_id(),
        runner=runner,
        expires_at=Now(),
        heartbeat_at=Now(),
        log_next_seq=1,
    )
    Job.objects.filter(pk=job.pk).update(
        status=status, attempt_count=1, finished_at=Now() if is_final(status) else None
    )
    return job, held


def attempt_move(move: str, job: Job, held: Held, ours: Tenant) -> None:
    """Try one move the way that the console makes it."""
    match move:
        case "claim":
            JobClaim.objects.filter(job=job).delete()
            queue.claim(
                runner_id=held.runner_id,
                organization_id=ours.organization.pk,
                pool_ids=[ours.pool.pk],
                types=list(JobType),
                claim_key=new_id(),
                lease_seconds=120,
            )
        case "start":
            queue.start(held=held)
        case _:
            queue.end_attempt(
                claim_id=held.claim_id,
                ending=Ending(move),
                attempt=AttemptEnd(outcome=Outcome.FAILED, reason=""),
                actor=Actor("system", None, "test"),
            )


@pytest.mark.parametrize(("move", "status"), list(itertools.product(MOVES, STATUSES)))
def test_each_move_is_made_from_its_sources_and_refused_from_every_other_status(
    ours: Tenant, move: str, status: JobStatus
) -> None:
    job, held = job_in(ours, status)
    expected = MOVES[move].get(status, status)
    if move == "cancel" and status == JobStatus.QUEUED:
        JobClaim.objects.all().delete()
        cancel_job(job=job, requested_by=ours.operator)
    else:
        attempt_move(move, job, held, ours)
    assert fresh(job).status == expected


@pytest.mark.parametrize("status", sorted(FINAL_STATUSES))
def test_cancelling_what_has_ended_is_refused_and_changes_nothing(ours: Tenant, status: JobStatus) -> None:
    job, _ = job_in(ours, status)
    before = Job.objects.filter(pk=job.pk).values().get()
    with pytest.raises(JobFinal, match=f"{status} is final"):
        cancel_job(job=job, requested_by=ours.operator)
    assert Job.objects.filter(pk=job.pk).values().get() == before


@pytest.mark.parametrize(
    ("final", "other"),
    [(final, other) for final in sorted(FINAL_STATUSES) for other in STATUSES if other != final],
)
def test_the_database_itself_keeps_a_final_status(ours: Tenant, final: JobStatus, other: JobStatus) -> None:
    job, _ = job_in(ours, final)
    with pytest.raises(IntegrityError, match="a final status cannot change any more"):
        Job.objects.filter(pk=job.pk).update(status=other, finished_at=Now() if is_final(other) else None)
    assert fresh(job).status == final


@pytest.mark.parametrize("status", STATUSES)
def test_finished_at_is_set_exactly_when_the_status_is_final(ours: Tenant, status: JobStatus) -> None:
    job = ours.request()
    with pytest.raises(IntegrityError, match="job_finished_at_only_when_final"):
        Job.objects.filter(pk=job.pk).update(status=status, finished_at=None if is_final(status) else Now())


@pytest.mark.parametrize(("column", "value"), [("status", "RUNNING"), ("type", "APPLY")])
def test_the_database_knows_no_other_statuses_and_types(ours: Tenant, column: str, value: str) -> None:
    job = ours.request()
    with pytest.raises(IntegrityError, match=f"job_{column}_known|job_finished_at_only_when_final"):
        Job.objects.filter(pk=job.pk).update(**{column: value})


@pytest.mark.parametrize(
    ("constraint", "values"),
    [("job_finished_at_only_when_final", list(JobStatus)), ("job_type_known", list(JobType))],
)
def test_the_database_has_the_values_of_the_enum(
    transactional_db: None, constraint: str, values: list[str]
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [constraint])
        (definition,) = cursor.fetchone()
    in_database = {text for text in definition.split("'")[1::2] if text.isupper()}
    assert in_database == {str(value) for value in values}


def test_the_trigger_has_the_final_statuses_of_the_enum(transactional_db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'job_final_is_final'")
        (definition,) = cursor.fetchone()
    in_trigger = {text for text in definition.split("'")[1::2] if text.isupper()}
    assert in_trigger == {str(status) for status in FINAL_STATUSES}


@pytest.mark.parametrize("change", [{"config_snapshot": {"format": 2}}, {"snapshot_hash": "0" * 64}])
def test_a_snapshot_never_changes(ours: Tenant, change: dict[str, Any]) -> None:
    job = ours.request()
    with pytest.raises(IntegrityError, match="a snapshot cannot change any more"):
        Job.objects.filter(pk=job.pk).update(**change)


def test_the_database_refuses_a_second_active_job_of_a_spec(ours: Tenant) -> None:
    job = fresh(ours.request())
    job.pk, job.number, job._state.adding = new_id(), 99, True
    with pytest.raises(IntegrityError, match="job_one_active_per_spec"):
        job.save(force_insert=True)


def test_a_claim_key_makes_one_claim_of_a_runner(ours: Tenant) -> None:
    _, held = job_in(ours, JobStatus.CLAIMED)
    first = JobClaim.objects.get()
    other = ours.request(spec=ours.new_spec("other"))
    with pytest.raises(DatabaseError, match="claim_key_once_per_runner"):
        JobClaim.objects.create(
            job=other,
            claim_id=new_id(),
            claim_key=first.claim_key,
            runner_id=held.runner_id,
            expires_at=Now(),
            heartbeat_at=Now(),
            log_next_seq=1,
        )


def test_final_and_active_statuses_are_all_statuses() -> None:
    assert FINAL_STATUSES | set(ACTIVE_STATUSES) == set(JobStatus)
    assert not FINAL_STATUSES & set(ACTIVE_STATUSES)
    assert [is_final(status) for status in JobStatus] == [False, False, False, True, True, True]


def test_no_move_leaves_a_final_status() -> None:
    assert not {source for move in MOVES for source in sources(move)} & FINAL_STATUSES


@pytest.mark.parametrize("kind", [JobType, JobStatus, LogLevel])
def test_each_value_survives_json(kind: type[JobType] | type[JobStatus] | type[LogLevel]) -> None:
    for value in kind:
        assert kind(json.loads(json.dumps(value))) is value


def test_every_type_has_a_policy_and_what_changes_infrastructure_is_never_retried_by_itself() -> None:
    assert set(KINDS) == set(JobType)
    assert all(kind.timeout_seconds > 0 for kind in KINDS.values())
    changing = {type for type, kind in KINDS.items() if kind.changes_infrastructure}
    assert changing == {
        JobType.DEPLOY,
        JobType.DESTROY,
        JobType.DEPLOY_WORKER,
        JobType.UPDATE_WORKER,
        JobType.DESTROY_WORKER,
    }
    assert all(KINDS[type].max_retries == 0 for type in changing)
    assert all(KINDS[type].max_retries > 0 for type in set(JobType) - changing)


@pytest.mark.parametrize("type", list(JobType))
def test_a_new_job_waits_with_its_types_policy_and_nothing_else(ours: Tenant, type: JobType) -> None:
    job = fresh(ours.request(type))
    assert job.status == "QUEUED"
    assert (job.max_retries, job.timeout_seconds) == (
        KINDS[type].max_retries,
        KINDS[type].timeout_seconds,
    )
    assert (job.retry_count, job.attempt_count, job.result, job.error_code, job.error_message) == (
        0,
        0,
        None,
        "",
        "",
    )
    assert (job.claimed_at, job.started_at, job.finished_at, job.cancel_requested_at) == (None,) * 4
    assert job.requested_by == ours.operator
    assert len(job.snapshot_hash) == 64
