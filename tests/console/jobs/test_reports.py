"""Reports: PROCESSING, then exactly one ending, however often it is sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from console.audit.models import AuditEvent
from console.janitor.services import request_timeouts
from console.jobs.models import Attempt, Job
from console.jobs.services import cancel_job
from runner.protocol import JobType
from tests.console_app import Console, RunnerClient, code_of
from tests.database_clock import let_time_pass_since_claim
from tests.people import Tenant, fresh


def stored(job: Job) -> list[Any]:
    return [
        Job.objects.filter(pk=job.pk).values().get(),
        list(Attempt.objects.filter(job=job).values()),
        AuditEvent.objects.filter(target_id=job.pk).count(),
    ]


def test_processing_then_success_with_its_result(runner: RunnerClient, ours: Tenant) -> None:
    job = ours.request()
    claim = runner.take()
    assert runner.start(claim).json() == {"status": "PROCESSING"}
    assert fresh(job).started_at is not None
    result = {"summary": {"add": 1}}
    assert runner.succeed(claim, result=result).json() == {"status": "SUCCESS"}
    job = fresh(job)
    assert (job.status, job.result, job.error_code) == ("SUCCESS", result, "")
    assert job.finished_at is not None


def test_a_failure_keeps_its_code_and_sentence(runner: RunnerClient, ours: Tenant) -> None:
    job = ours.request(JobType.DESTROY)
    claim = runner.take_and_start()
    answer = runner.fail(claim, error_code="no_disk", error_message="The disk is full.")
    assert answer.json() == {"status": "FAILED"}
    job = fresh(job)
    assert (job.status, job.error_code, job.error_message) == ("FAILED", "no_disk", "The disk is full.")


def test_a_claimed_job_may_fail_before_it_began(runner: RunnerClient, ours: Tenant) -> None:
    job = ours.request(JobType.DESTROY)
    assert runner.fail(runner.take()).json() == {"status": "FAILED"}
    assert fresh(job).started_at is None


def test_a_claimed_job_cannot_succeed_before_it_began(runner: RunnerClient, ours: Tenant) -> None:
    job = ours.request()
    answer = runner.succeed(runner.take())
    assert (answer.status_code, code_of(answer)) == (409, "move_refused")
    assert fresh(job).status == "CLAIMED"


def test_saying_processing_twice_changes_nothing(runner: RunnerClient, ours: Tenant) -> None:
    job = ours.request()
    claim = runner.take_and_start()
    before = stored(job)
    assert runner.start(claim).json() == {"status": "PROCESSING"}
    assert stored(job) == before


@pytest.mark.parametrize("status", ["QUEUED", "CLAIMED", "DONE", ""])
def test_a_runner_reports_no_other_status(runner: RunnerClient, ours: Tenant, status: str) -> None:
    job = ours.request()
    claim = runner.take_and_start()
    answer = runner.report(claim, status)
    assert (answer.status_code, code_of(answer)) == (409, "move_refused")
    assert fresh(job).status == "PROCESSING"


ENDINGS: dict[str, dict[str, Any]] = {
    "success": {"status": "SUCCESS", "result": {"summary": {"add": 1}}},
    "failure": {"status": "FAILED", "error_code": "broken", "error_message": "It broke."},
    "fatal failure": {
        "status": "FAILED",
        "error_code": "broken",
        "error_message": "It broke.",
        "fatal": True,
    },
    "cancelled": {"status": "CANCELLED", "error_code": "cancelled"},
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_the_same_ending_again_gets_the_same_answer_and_changes_nothing(
    runner: RunnerClient, ours: Tenant, ending: dict[str, Any]
) -> None:
    """The answer to the first was lost on the network."""
    job = ours.request()
    claim = runner.take_and_start()
    first = runner.report(claim, **ending)
    before = stored(job)
    again = runner.report(claim, **ending)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert stored(job) == before


@pytest.mark.parametrize("first", ENDINGS, ids=ENDINGS)
@pytest.mark.parametrize("second", ENDINGS, ids=ENDINGS)
def test_a_different_ending_is_refused_and_changes_nothing(
    runner: RunnerClient, ours: Tenant, first: str, second: str
) -> None:
    if first == second:
        return
    job = ours.request()
    claim = runner.take_and_start()
    runner.report(claim, **ENDINGS[first])
    before = stored(job)
    answer = runner.report(claim, **ENDINGS[second])
    assert (answer.status_code, code_of(answer)) == (409, "report_conflict")
    assert stored(job) == before


@pytest.mark.parametrize("round", range(5))
def test_two_different_endings_at_once_one_is_written(console: Console, ours: Tenant, round: int) -> None:
    job, (_, credential) = ours.request(JobType.DESTROY), ours.new_runner()
    runner = console.runner(credential)
    claim = runner.take_and_start()
    path = f"/api/jobs/{claim.job_id}/status"
    requests = [
        console.runner(credential).begin("PUT", path, json={"claim_id": claim.claim_id, **ENDINGS[name]})
        for name in ("success", "failure")
    ]
    answers = [request.result(10) for request in requests]
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    winner = next(answer for answer in answers if answer.status_code == 200)
    assert fresh(job).status == winner.json()["status"]
    assert (
        AuditEvent.objects.filter(target_id=job.pk, action__in=["job.succeeded", "job.failed"]).count() == 1
    )


def test_after_the_ending_it_cannot_start_again(runner: RunnerClient, ours: Tenant) -> None:
    job = ours.request()
    claim = runner.take_and_start()
    runner.succeed(claim)
    answer = runner.start(claim)
    assert (answer.status_code, code_of(answer)) == (409, "stale_claim")
    assert fresh(job).status == "SUCCESS"


def test_a_job_that_was_asked_to_stop_ends_cancelled_whatever_the_error(
    runner: RunnerClient, ours: Tenant
) -> None:
    job = ours.request(JobType.DESTROY)
    claim = runner.take_and_start()
    cancel_job(job=job, requested_by=ours.operator)
    assert runner.fail(claim, error_code="interrupted").json() == {"status": "CANCELLED"}
    job = fresh(job)
    assert (job.error_code, job.cancelled_by) == ("cancelled", ours.operator)
    assert job.attempts.get().exit_reason == "It broke."


def test_a_job_that_finished_before_the_cancel_arrived_has_succeeded(
    runner: RunnerClient, ours: Tenant
) -> None:
    job = ours.request()
    claim = runner.take_and_start()
    cancel_job(job=job, requested_by=ours.operator)
    assert runner.succeed(claim).json() == {"status": "SUCCESS"}
    assert fresh(job).cancelled_by == ours.operator


def test_cancelled_by_a_timeout_says_so_even_when_the_runner_does_not(
    runner: RunnerClient, ours: Tenant
) -> None:

    job = ours.request()
    claim = runner.take_and_start()
    let_time_pass_since_claim(job, timedelta(hours=1, seconds=1))
    request_timeouts()
    assert runner.report(claim, "CANCELLED").json() == {"status": "CANCELLED"}
    job = fresh(job)
    assert (job.error_code, job.error_message) == ("timeout_exceeded", "Timeout exceeded.")


def test_characters_that_no_database_keeps_do_not_hold_a_report_up(
    runner: RunnerClient, ours: Tenant
) -> None:
    job = ours.request(JobType.DESTROY)
    claim = runner.take_and_start()
    answer = runner.fail(claim, error_message="before\0after", result={"text": "a\0b", "c\0": ["\0"]})
    assert answer.status_code == 200, answer.text
    assert "before" in fresh(job).error_message


@pytest.mark.parametrize(
    "fields",
    [
        {"error_code": "x" * 61},
        {"result": "text"},
        {"fatal": "yes"},
        {"log": {"next_seq": "many", "chain": ""}},
        {"log": {"next_seq": 2**70, "chain": "0" * 64}},
        {"log": {"next_seq": -5, "chain": "0" * 64}},
        {"log": {"next_seq": 1, "chain": "0" * 65}},
        {"claim_id": "x"},
    ],
    ids=["long code", "result", "fatal", "text for number", "huge", "negative", "long chain", "claim id"],
)
def test_a_malformed_report_is_refused_and_a_good_one_still_taken(
    runner: RunnerClient, ours: Tenant, fields: dict[str, Any]
) -> None:
    job = ours.request(JobType.DESTROY)
    claim = runner.take_and_start()
    answer = runner.put(
        f"/api/jobs/{claim.job_id}/status",
        json={"claim_id": claim.claim_id, "status": "FAILED", **fields},
    )
    assert (answer.status_code, code_of(answer)) == (400, "invalid_message")
    assert fresh(job).status == "PROCESSING"
    assert runner.fail(claim).status_code == 200


def test_fields_that_are_not_known_are_ignored(runner: RunnerClient, ours: Tenant) -> None:
    """A newer runner talks to an older console."""
    ours.request()
    claim = runner.take_and_start()
    assert runner.succeed(claim, mood="cheerful").json() == {"status": "SUCCESS"}
