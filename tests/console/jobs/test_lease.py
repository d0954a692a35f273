"""The lease: renewed by heartbeats, which write one narrow row, and of no use to anyone else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import httpx
import pytest
from django.db import connection
from django.db.models.functions import Now

from console.janitor.services import take_back_lost_jobs
from console.jobs.models import Job, JobClaim
from console.jobs.services import cancel_job
from runner.protocol import Claim
from tests.console_app import Console, RunnerClient, code_of
from tests.database_clock import let_lease_run_out
from tests.people import Tenant, fresh, some_uuid

Say = Callable[[RunnerClient, Claim], httpx.Response]

#: Everything that a runner says about a claim after it was given one.
SAYINGS: dict[str, Say] = {
    "heartbeat": lambda runner, claim: runner.heartbeat(claim),
    "log": lambda runner, claim: runner.log(claim, 1, "a line"),
    "start": lambda runner, claim: runner.start(claim),
    "success": lambda runner, claim: runner.succeed(claim),
    "failure": lambda runner, claim: runner.fail(claim),
    "cancelled": lambda runner, claim: runner.report(claim, "CANCELLED"),
    "plan upload": lambda runner, claim: runner.upload_plan(claim),
    "plan download": lambda runner, claim: runner.download_plan(claim),
}
every_saying = pytest.mark.parametrize("say", SAYINGS.values(), ids=SAYINGS)


def everything_about(job: Job) -> object:
    """The job, its claim, its attempts, its log and its plan, as they are stored."""
    tables = ("jobs_job", "jobs_jobclaim", "jobs_attempt", "jobs_logchunk", "plans_plan")
    key = {"jobs_job": "id"}
    with connection.cursor() as cursor:
        stored = []
        for table in tables:
            cursor.execute(f"SELECT * FROM {table} WHERE {key.get(table, 'job_id')} = %s", [job.pk])
            stored.append(sorted(map(str, cursor.fetchall())))
    return stored


def row_version(job: Job) -> str:
    """Changes whenever the job's row is written, whatever is written."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT xmin::text || ctid::text FROM jobs_job WHERE id = %s", [job.pk])
        return str(cursor.fetchone()[0])


def test_a_heartbeat_renews_the_lease_and_writes_nothing_else_of_the_job(
    console: Console, ours: Tenant
) -> None:
    job, runner = ours.request(), console.new_runner(ours)
    claim = runner.take_and_start()
    JobClaim.objects.update(expires_at=Now())
    version = row_version(job)
    answer = runner.beat(claim)
    assert (answer.lease_seconds, answer.cancel, answer.drain) == (120, None, False)
    lease = JobClaim.objects.get(job=job)
    assert (lease.expires_at - lease.heartbeat_at).total_seconds() == 120
    assert row_version(job) == version


def test_log_lines_do_not_write_the_jobs_row(console: Console, ours: Tenant) -> None:
    job, runner = ours.request(), console.new_runner(ours)
    claim = runner.take_and_start()
    version = row_version(job)
    assert runner.log(claim, 1, "one", "two").status_code == 200
    assert row_version(job) == version


def test_a_lease_that_ran_out_and_was_not_taken_back_is_still_the_runners(
    console: Console, ours: Tenant
) -> None:
    job, runner = ours.request(), console.new_runner(ours)
    claim = runner.take_and_start()
    let_lease_run_out(job)
    runner.beat(claim)
    assert take_back_lost_jobs() == 0
    assert runner.succeed(claim).json()["status"] == "SUCCESS"


@every_saying
def test_after_the_claim_was_taken_back_everything_is_refused_and_nothing_changes(
    console: Console, ours: Tenant, say: Say
) -> None:
    job, runner = ours.request(), console.new_runner(ours)
    claim = runner.take_and_start()
    let_lease_run_out(job)
    take_back_lost_jobs()
    before = everything_about(job)
    answer = say(runner, claim)
    assert (answer.status_code, code_of(answer)) == (409, "stale_claim")
    assert everything_about(job) == before


@every_saying
def test_when_another_runner_holds_the_job_the_first_is_refused(
    console: Console, ours: Tenant, say: Say
) -> None:
    job, first, second = ours.request(), console.new_runner(ours, "first"), console.new_runner(ours, "second")
    old = first.take()
    let_lease_run_out(job)
    take_back_lost_jobs()
    second.take_and_start()
    before = everything_about(job)
    answer = say(first, old)
    assert (answer.status_code, code_of(answer)) == (409, "stale_claim")
    assert everything_about(job) == before


@every_saying
def test_a_claim_is_of_no_use_to_another_runner(console: Console, ours: Tenant, say: Say) -> None:
    job = ours.request()
    claim = console.new_runner(ours, "first").take_and_start()
    before = everything_about(job)
    answer = say(console.new_runner(ours, "second"), claim)
    assert (answer.status_code, code_of(answer)) == (409, "stale_claim")
    assert everything_about(job) == before


@every_saying
def test_a_claim_is_of_no_use_to_another_organization(
    console: Console, ours: Tenant, theirs: Tenant, say: Say
) -> None:
    job = ours.request()
    claim = console.new_runner(ours).take_and_start()
    before = everything_about(job)
    answer = say(console.new_runner(theirs), claim)
    assert (answer.status_code, code_of(answer)) == (409, "stale_claim")
    assert everything_about(job) == before


@every_saying
def test_a_claim_holds_its_own_job_only(console: Console, ours: Tenant, say: Say) -> None:
    """The id of a runner's own claim does not give it a job that another runner holds."""
    mine, other = ours.request(spec=ours.new_spec("mine")), ours.request(spec=ours.new_spec("other"))
    runner = console.new_runner(ours, "first")
    claim = runner.take_and_start()
    assert claim.job_id == str(mine.pk)
    elsewhere = console.new_runner(ours, "second").take_and_start()
    before = everything_about(other)
    mixed = replace(claim, job_id=elsewhere.job_id)
    answer = say(runner, mixed)
    assert (answer.status_code, code_of(answer)) == (409, "stale_claim")
    assert everything_about(other) == before
    assert fresh(mine).status == "PROCESSING"


@every_saying
def test_a_claim_that_never_was_is_refused(console: Console, ours: Tenant, say: Say) -> None:
    ours.request()
    runner = console.new_runner(ours)
    claim = runner.take()
    unknown = replace(claim, claim_id=str(some_uuid()))
    assert code_of(say(runner, unknown)) == "stale_claim"
    nowhere = replace(claim, job_id=str(some_uuid()))
    assert code_of(say(runner, nowhere)) == "stale_claim"


@every_saying
def test_without_a_known_credential_everything_is_refused(console: Console, ours: Tenant, say: Say) -> None:
    ours.request()
    claim = console.new_runner(ours).take()
    answer = say(console.runner("slr_" + "x" * 43), claim)
    assert (answer.status_code, code_of(answer)) == (401, "runner_unknown")


def test_a_cancel_comes_with_the_next_heartbeat(console: Console, ours: Tenant) -> None:
    job, runner = ours.request(), console.new_runner(ours)
    claim = runner.take_and_start()
    cancel_job(job=job, requested_by=ours.operator)
    assert runner.beat(claim).cancel == "person"


def test_a_malformed_heartbeat_is_refused(console: Console, ours: Tenant) -> None:
    ours.request()
    runner = console.new_runner(ours)
    claim = runner.take()
    bodies: list[object] = [{}, {"claim_id": "x"}, {"claim_id": None}, []]
    for body in bodies:
        answer = runner.post(f"/api/jobs/{claim.job_id}/heartbeat", json=body)
        assert (answer.status_code, code_of(answer)) == (400, "invalid_message")
    answer = runner.post(f"/api/jobs/{claim.job_id}/heartbeat", content=b"{")
    assert (answer.status_code, code_of(answer)) == (400, "invalid_message")
