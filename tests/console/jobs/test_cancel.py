"""Cancelling: at once what waits, through the heartbeat what runs, by force what does not listen."""

from __future__ import annotations

from datetime import timedelta

import pytest

from console.audit.models import AuditEvent
from console.janitor.services import request_timeouts
from console.jobs.models import JobClaim
from runner.protocol import JobType
from tests.console_app import Console, Http, RunnerClient, code_of
from tests.database_clock import let_time_pass_since_claim
from tests.people import Tenant, fresh


@pytest.fixture
def operator(console: Console, ours: Tenant) -> Http:
    return console.person(ours, "operator")


def test_what_is_queued_is_cancelled_at_once(operator: Http, ours: Tenant) -> None:
    job = ours.request()
    answer = operator.post(f"/api/jobs/{job.pk}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (200, "CANCELLED")
    job = fresh(job)
    assert (job.cancelled_by, job.error_code, job.cancel_reason) == (ours.operator, "cancelled", "person")
    assert job.finished_at is not None
    assert "before it started" in job.error_message


@pytest.mark.parametrize("started", [False, True], ids=["claimed", "processing"])
def test_what_a_runner_has_goes_on_until_the_runner_stops_it(
    operator: Http, runner: RunnerClient, ours: Tenant, started: bool
) -> None:
    job = ours.request()
    claim = runner.take_and_start() if started else runner.take()
    answer = operator.post(f"/api/jobs/{job.pk}/cancel")
    assert answer.json()["status"] == ("PROCESSING" if started else "CLAIMED")
    assert answer.json()["cancel_requested_at"]
    assert runner.beat(claim).cancel == "person"
    assert runner.report(claim, "CANCELLED").json() == {"status": "CANCELLED"}
    job = fresh(job)
    assert (job.status, job.error_code, job.cancelled_by) == ("CANCELLED", "cancelled", ours.operator)


def test_a_second_person_who_cancels_does_not_replace_the_first(
    console: Console, operator: Http, runner: RunnerClient, ours: Tenant
) -> None:
    job = ours.request()
    runner.take_and_start()
    operator.post(f"/api/jobs/{job.pk}/cancel")
    asked_at = fresh(job).cancel_requested_at
    console.person(ours, "second_operator").post(f"/api/jobs/{job.pk}/cancel")
    job = fresh(job)
    assert (job.cancelled_by, job.cancel_requested_at) == (ours.operator, asked_at)
    requests = AuditEvent.objects.filter(target_id=job.pk, action="job.cancel_requested").order_by("pk")
    assert [event.actor_id for event in requests] == [ours.operator.pk, ours.second_operator.pk]


def test_force_fences_the_attempt_at_once(operator: Http, runner: RunnerClient, ours: Tenant) -> None:
    job = ours.request(JobType.DESTROY)
    claim = runner.take_and_start()
    answer = operator.post(f"/api/jobs/{job.pk}/cancel", json={"force": True})
    assert answer.json()["status"] == "CANCELLED"
    assert not JobClaim.objects.exists()
    attempt = job.attempts.get()
    assert (attempt.outcome, attempt.orphaned) == ("cancelled", True)
    assert "Terraform may still be running on the runner" in attempt.exit_reason
    for refused in (runner.heartbeat(claim), runner.log(claim, 1, "late"), runner.succeed(claim)):
        assert (refused.status_code, code_of(refused)) == (409, "stale_claim")
    assert fresh(job).status == "CANCELLED"


def test_force_after_a_polite_request_keeps_who_asked_first(
    console: Console, operator: Http, runner: RunnerClient, ours: Tenant
) -> None:
    job = ours.request()
    runner.take_and_start()
    operator.post(f"/api/jobs/{job.pk}/cancel")
    console.person(ours, "second_operator").post(f"/api/jobs/{job.pk}/cancel", json={"force": True})
    job = fresh(job)
    assert (job.status, job.cancelled_by) == ("CANCELLED", ours.operator)
    ended = AuditEvent.objects.get(target_id=job.pk, action="job.cancelled")
    assert ended.actor_id == ours.second_operator.pk


def test_after_force_the_spec_is_free_for_the_next_job(
    operator: Http, runner: RunnerClient, ours: Tenant
) -> None:
    job = ours.request()
    runner.take_and_start()
    operator.post(f"/api/jobs/{job.pk}/cancel", json={"force": True})
    assert runner.claim() is None
    assert ours.request().status == "QUEUED"


def test_what_has_ended_is_not_cancelled(operator: Http, runner: RunnerClient, ours: Tenant) -> None:
    job = ours.request()
    runner.succeed(runner.take_and_start())
    for body in ({}, {"force": True}):
        answer = operator.post(f"/api/jobs/{job.pk}/cancel", json=body)
        assert (answer.status_code, code_of(answer)) == (409, "job_final")
    assert fresh(job).cancelled_by is None


def test_a_person_does_not_take_the_place_of_the_timeout(
    operator: Http, runner: RunnerClient, ours: Tenant
) -> None:

    job = ours.request()
    claim = runner.take_and_start()
    let_time_pass_since_claim(job, timedelta(hours=2))
    request_timeouts()
    operator.post(f"/api/jobs/{job.pk}/cancel")
    assert runner.beat(claim).cancel == "timeout"
    runner.report(claim, "CANCELLED")
    assert (fresh(job).error_code, fresh(job).cancelled_by) == ("timeout_exceeded", ours.operator)
