"""History: one row per attempt, one event per action, and nothing is overwritten."""

from __future__ import annotations

import pytest

from console.janitor.services import take_back_lost_jobs
from console.jobs.services import cancel_job
from runner.protocol import JobType
from tests.console_app import Console, Http
from tests.database_clock import let_lease_run_out, let_retry_wait_pass
from tests.people import Tenant, fresh


@pytest.fixture
def viewer(console: Console, ours: Tenant) -> Http:
    return console.person(ours, "viewer")


def test_every_attempt_is_shown_with_its_runner_and_its_end(
    console: Console, viewer: Http, ours: Tenant
) -> None:
    job = ours.request()
    lost, failing, good = (console.new_runner(ours, name) for name in ("lost", "failing", "good"))
    lost.take()
    let_lease_run_out(job)
    take_back_lost_jobs()
    failing.fail(failing.take_and_start(), error_message="No space left.")
    let_retry_wait_pass(job)
    good.succeed(good.take_and_start())

    attempts = viewer.get(f"/api/jobs/{job.pk}/attempts").json()["data"]
    assert [
        (attempt["number"], attempt["runner"], attempt["outcome"], attempt["orphaned"])
        for attempt in attempts
    ] == [
        (1, "lost", "lost", True),
        (2, "failing", "failed", False),
        (3, "good", "succeeded", False),
    ]
    assert attempts[0]["started_at"] is None
    assert "the lease ran out at" in attempts[0]["exit_reason"]
    assert attempts[1]["exit_reason"] == "No space left."
    assert all(attempt["claimed_at"] <= attempt["ended_at"] for attempt in attempts)
    assert fresh(job).retry_count == 1, "an attempt of which nothing ran costs no retry"


def test_an_attempt_under_way_has_no_end(console: Console, viewer: Http, ours: Tenant) -> None:
    job = ours.request()
    console.new_runner(ours).take_and_start()
    (attempt,) = viewer.get(f"/api/jobs/{job.pk}/attempts").json()["data"]
    assert (attempt["outcome"], attempt["ended_at"], attempt["orphaned"]) == ("running", None, False)
    assert attempt["started_at"]


def test_every_action_is_one_event_with_its_actor(console: Console, viewer: Http, ours: Tenant) -> None:
    job, runner = ours.request(JobType.DESTROY), console.new_runner(ours, "worker")
    claim = runner.take_and_start()
    cancel_job(job=job, requested_by=ours.second_operator)
    runner.report(claim, "CANCELLED")
    events = viewer.get(f"/api/jobs/{job.pk}/events").json()["data"]
    assert [(event["action"], event["actor_kind"], event["actor_name"]) for event in events] == [
        ("job.requested", "person", ours.operator.username),
        ("job.claimed", "runner", "worker"),
        ("job.started", "runner", "worker"),
        ("job.cancel_requested", "person", ours.second_operator.username),
        ("job.cancelled", "runner", "worker"),
    ]


def test_a_lost_attempt_is_an_event_of_the_consoles_own(console: Console, viewer: Http, ours: Tenant) -> None:
    job = ours.request()
    console.new_runner(ours).take()
    let_lease_run_out(job)
    take_back_lost_jobs()
    event = viewer.get(f"/api/jobs/{job.pk}/events").json()["data"][-1]
    assert (event["action"], event["actor_kind"], event["data"]["outcome"]) == (
        "job.requeued",
        "system",
        "lost",
    )


def test_who_asked_and_who_cancelled_stay_on_record_through_everything(
    console: Console, ours: Tenant
) -> None:
    job, runner = ours.request(), console.new_runner(ours)
    runner.fail(runner.take_and_start())
    let_retry_wait_pass(job)
    claim = runner.take_and_start()
    cancel_job(job=job, requested_by=ours.second_operator)
    runner.report(claim, "CANCELLED")
    job = fresh(job)
    assert (job.requested_by, job.cancelled_by) == (ours.operator, ours.second_operator)
