""" "Why is this waiting?": one sentence and the remedy, for everything that is not final."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from console.accounts.services import set_installation_drain, set_organization_drain
from console.janitor.services import request_timeouts
from console.jobs.models import Job, JobClaim
from console.jobs.services import cancel_job
from console.runners.models import Runner
from tests.console_app import Console, RunnerClient
from tests.database_clock import let_time_pass_since_claim
from tests.people import Tenant


def why(console: Console, ours: Tenant, job: Job) -> tuple[str, str] | None:
    """Return the API's answer to a viewer, with seconds in tens, since asking takes time too."""
    waiting = console.person(ours, "viewer").get(f"/api/jobs/{job.pk}").json()["waiting"]
    return (re.sub(r"\d s\b", "0 s", waiting["reason"]), waiting["remedy"]) if waiting else None


@pytest.fixture
def runner(console: Console, ours: Tenant) -> RunnerClient:
    return console.new_runner(ours, "worker")


def test_no_runner_serves_the_pool(console: Console, ours: Tenant) -> None:
    assert why(console, ours, ours.request()) == (
        "No runner serves pool default.",
        "Add a runner to this pool.",
    )


def test_no_runner_is_online(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    Runner.objects.update(status="OFFLINE")
    assert why(console, ours, ours.request()) == (
        "No runner is online in pool default.",
        "Start worker, or add a runner.",
    )


def test_no_runner_takes_this_type(console: Console, ours: Tenant) -> None:
    console.new_runner(ours, types=["DESTROY"])
    assert why(console, ours, ours.request()) == (
        "No online runner in pool default accepts PLAN jobs.",
        "Add a runner that accepts PLAN jobs, or end a runner's drain.",
    )


def test_the_only_runner_drains(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    Runner.objects.update(draining_since=Now())
    assert why(console, ours, ours.request()) == (
        "No online runner in pool default accepts PLAN jobs.",
        "Add a runner that accepts PLAN jobs, or end a runner's drain.",
    )


def test_all_slots_are_busy(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    ours.request(spec=ours.new_spec("running"))
    runner.take_and_start()
    ours.request(spec=ours.new_spec("ahead"))
    assert why(console, ours, ours.request()) == (
        "The only slot in pool default is busy; 1 job ahead.",
        "Wait, or add a runner.",
    )


def test_about_to_be_claimed(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    ours.request(spec=ours.new_spec("ahead"))
    assert why(console, ours, ours.request()) == (
        "Starting: 1 free slot in pool default; 1 job ahead.",
        "",
    )


def test_it_waits_for_its_retry(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    job = ours.request()
    runner.fail(runner.take_and_start())
    run_after = Job.objects.get(pk=job.pk).run_after
    assert why(console, ours, job) == (f"Retry 1 of 2 at {run_after:%H:%M:%S} UTC.", "Wait, or cancel it.")


@pytest.mark.parametrize("whole", [False, True], ids=["organization", "installation"])
def test_a_drain(console: Console, ours: Tenant, runner: RunnerClient, whole: bool) -> None:
    job = ours.request()
    if whole:
        set_installation_drain(draining=True)
    else:
        set_organization_drain(organization=ours.organization, draining=True, requested_by=ours.admin)
    assert why(console, ours, job) == (
        "Draining: no jobs are started.",
        "Wait until an admin ends the drain.",
    )


def test_the_runner_is_silent(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    job = ours.request()
    runner.take_and_start()
    JobClaim.objects.update(
        heartbeat_at=Now() - timedelta(seconds=41), expires_at=Now() + timedelta(seconds=88)
    )
    reason, remedy = why(console, ours, job) or ("", "")
    assert reason == "Runner worker has been silent for 40 s; its lease expires in 80 s."
    assert remedy == "Check runner worker; the job is taken back when the lease expires."


def test_the_runners_lease_has_expired(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    job = ours.request()
    runner.take_and_start()
    JobClaim.objects.update(
        heartbeat_at=Now() - timedelta(seconds=121), expires_at=Now() - timedelta(seconds=5)
    )
    reason, _ = why(console, ours, job) or ("", "")
    assert reason == "Runner worker has been silent for 120 s; its lease has expired."


def test_a_person_asked_it_to_stop(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    job = ours.request()
    runner.take_and_start()
    cancel_job(job=job, requested_by=ours.second_operator)
    Job.objects.update(cancel_requested_at=Now() - timedelta(seconds=11))
    assert why(console, ours, job) == (
        f"{ours.second_operator} cancelled it 10 s ago; Terraform is finishing its current operations.",
        "Wait, or force cancel: Terraform may then still be running on the runner.",
    )


def test_the_timeout_asked_it_to_stop(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    job = ours.request()
    runner.take_and_start()
    let_time_pass_since_claim(job, timedelta(hours=2))
    request_timeouts()
    reason, _ = why(console, ours, job) or ("", "")
    assert reason.startswith("The job timed out 0 s ago")


def test_what_gets_on_waits_for_nothing(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    job = ours.request()
    claim = runner.take()
    assert why(console, ours, job) is None
    runner.start(claim)
    assert why(console, ours, job) is None


def test_what_has_ended_waits_for_nothing(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    job = ours.request()
    runner.succeed(runner.take_and_start())
    assert why(console, ours, job) is None


def test_the_second_job_of_a_spec_is_told_which_job_holds_it(console: Console, ours: Tenant) -> None:
    """It never waits: it is refused with the holder, which is the answer to the question."""
    first = ours.request()
    answer = console.person(ours, "operator").post(
        "/api/jobs", json={"spec": str(ours.spec.pk), "type": "PLAN"}
    )
    assert f"network is in use by PLAN #{first.number}, which is QUEUED" in answer.json()["detail"]
