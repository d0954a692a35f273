"""What becomes of the lock and of the spec when a runner is lost, and what people are told."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from console.audit.models import AuditEvent
from console.janitor.services import end_timed_out_jobs, run_once, take_back_lost_jobs
from console.jobs.models import Job
from console.jobs.services import cancel_job
from console.jobs.waiting import why_waiting
from console.state.abandoned import release_abandoned_locks
from console.state.models import StateLock, StateVersion
from runner.protocol import Claim, JobType
from tests.console.state.backend_client import StateClient, state
from tests.console.state.conftest import NewLaptop
from tests.console.state.terraform import HTTP_BACKEND, TWO_RESOURCES
from tests.console_app import Background, Console, RunnerClient
from tests.database_clock import a_console_has_been_serving, let_lease_run_out
from tests.people import Tenant, fresh
from tests.process_table import children
from tests.runner.installation import messages, new_project, wait_for_end, wait_for_line
from tests.runner.processes import RunnerProcess, spawn_runner
from tests.runner.terraforms import terraform_on_path


@pytest.fixture
def runner(console: Console, ours: Tenant) -> RunnerClient:
    return console.new_runner(ours, "eu-1", slots=5)


def locked(background: Background, tenant: Tenant, claim: Claim) -> StateClient:
    client = StateClient.of_attempt(background, tenant.spec, claim)
    client.locked()
    return client


def refresh_only_plans(tenant: Tenant) -> list[Job]:
    return [
        job
        for job in Job.objects.filter(spec=tenant.spec, type=JobType.PLAN)
        if job.config_snapshot.get("refresh_only")
    ]


def test_nothing_ran_so_the_lock_is_released(
    background: Background, ours: Tenant, runner: RunnerClient
) -> None:
    job = ours.request(JobType.DESTROY)
    locked(background, ours, runner.take())
    let_lease_run_out(job)
    take_back_lost_jobs()
    assert not StateLock.objects.exists()
    assert fresh(job).status == "QUEUED"
    assert not refresh_only_plans(ours)
    event = AuditEvent.objects.get(action="state.lock_released")
    assert "nothing ran" in event.data["because"]


def test_a_lost_plan_does_not_block_its_own_retry(
    background: Background, ours: Tenant, runner: RunnerClient
) -> None:
    job = ours.request(JobType.PLAN)
    locked(background, ours, runner.take_and_start())
    let_lease_run_out(job)
    take_back_lost_jobs()
    assert not StateLock.objects.exists()
    assert fresh(job).status == "QUEUED"


def test_an_interrupted_apply_keeps_its_lock_and_a_refresh_only_plan_is_queued(
    background: Background, ours: Tenant, runner: RunnerClient
) -> None:
    job = ours.request(JobType.DESTROY)
    zombie = locked(background, ours, runner.take_and_start())
    let_lease_run_out(job)
    take_back_lost_jobs()
    assert fresh(job).error_code == "runner_lost"
    lock = StateLock.objects.get(spec=ours.spec)
    (plan,) = refresh_only_plans(ours)
    assert (plan.status, plan.requested_by) == ("QUEUED", None)
    # The lost attempt can neither write nor give the lock back any more.
    assert zombie.write(state(), lock.lock_id).status_code == 401
    assert zombie.unlock(lock.lock_id).status_code == 401
    waiting = why_waiting(plan)
    assert waiting is not None
    assert f"state of network is locked by DESTROY #{job.number} on runner eu-1 since" in waiting.reason
    assert "force-unlock" in waiting.remedy


@pytest.mark.parametrize("by", ["force", "timeout"])
def test_an_apply_that_is_fenced_is_an_interrupted_one(
    background: Background, ours: Tenant, runner: RunnerClient, by: str
) -> None:
    job = ours.request(JobType.DESTROY)
    locked(background, ours, runner.take_and_start())
    if by == "force":
        cancel_job(job=job, requested_by=ours.operator, force=True)
    else:
        Job.objects.filter(pk=job.pk).update(
            timeout_seconds=0,
            cancel_requested_at="2026-01-01T00:00Z",
            cancel_reason="timeout",
            claimed_at="2026-01-01T00:00Z",
        )
        end_timed_out_jobs()
    assert fresh(job).status == "CANCELLED"
    assert StateLock.objects.exists()
    assert len(refresh_only_plans(ours)) == 1


def test_a_second_look_does_nothing_more(background: Background, ours: Tenant, runner: RunnerClient) -> None:
    a_console_has_been_serving()
    job = ours.request(JobType.DESTROY)
    locked(background, ours, runner.take_and_start())
    let_lease_run_out(job)
    run_once()
    run_once()
    assert len(refresh_only_plans(ours)) == 1
    assert StateLock.objects.count() == 1


def test_a_lock_that_a_finished_plan_left_is_released(
    background: Background, ours: Tenant, runner: RunnerClient
) -> None:
    """Terraform was killed on the runner, and the runner has reported that."""
    ours.request(JobType.PLAN)
    claim = runner.take_and_start()
    locked(background, ours, claim)
    assert release_abandoned_locks() == 0, "the attempt is still at work"
    assert runner.fail(claim, fatal=True).status_code == 200
    assert release_abandoned_locks() == 1


def test_a_persons_lock_is_never_released_by_itself(background: Background, ours: Tenant) -> None:
    StateClient.of_person(background, ours.spec, ours, "operator").locked(Who="me@laptop")
    assert release_abandoned_locks() == 0
    waiting = why_waiting(ours.request())
    assert waiting is not None
    assert "state of network is locked by ours-operator (me@laptop) since" in waiting.reason


def test_a_job_that_holds_the_lock_itself_does_not_wait_for_it(
    background: Background, ours: Tenant, runner: RunnerClient
) -> None:
    job = ours.request()
    locked(background, ours, runner.take_and_start())
    assert why_waiting(fresh(job)) is None


# --- With a real runner and real Terraform ---------------------------------------------------------

SLOW = {
    "main.tf": """
        resource "terraform_data" "first" {}
        resource "terraform_data" "slow" {
          depends_on = [terraform_data.first]
          provisioner "local-exec" { command = "echo begun; sleep 60" }
        }
    """
}


def start_runner(tenant: Tenant, console_url: str, folder: Path, name: str) -> RunnerProcess:
    return spawn_runner(
        console_url=console_url,
        data_dir=folder / name,
        log=folder / f"{name}.log",
        arguments=(),
        environ={
            "SLIPWAY_TERRAFORM": terraform_on_path(),
            "SLIPWAY_RUNNER_CREDENTIAL": tenant.new_runner(name)[1],
        },
    )


def lose(machine: RunnerProcess) -> None:
    """As a power cut does: the runner, its guard, its relay and Terraform are gone at the same moment."""
    everything = [*machine.terraform_processes(), *children(machine.process.pid), machine.process.pid]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in everything:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    machine.process.wait()
    machine.end()


def test_a_machine_that_is_lost_in_the_middle_of_an_apply(
    served: str, ours: Tenant, laptop: NewLaptop, tmp_path: Path
) -> None:
    project = new_project(ours, SLOW)
    machine = start_runner(ours, served, tmp_path, "lost")
    job = project.deploy()
    wait_for_line(job, "begun")
    lose(machine)
    lock = StateLock.objects.get(spec=project.spec)
    let_lease_run_out(job)
    take_back_lost_jobs()
    assert fresh(job).error_code == "runner_lost"

    second = start_runner(ours, served, tmp_path, "second")
    try:
        look_at_it = Job.objects.filter(spec=project.spec).latest("id")
        ended = wait_for_end(look_at_it)
        assert ended.status == "SUCCESS", messages(look_at_it)
        assert StateLock.objects.get(spec=project.spec).lock_id == lock.lock_id
        person = laptop(spec=project.spec, person="admin").write(backend=HTTP_BACKEND, main=TWO_RESOURCES)
        person.init().run("force-unlock", "-force", lock.lock_id)
        plan = project.plan()
        assert plan.summary["add"] >= 1
        assert StateVersion.objects.filter(spec=project.spec).count() <= 1
    finally:
        second.end()
