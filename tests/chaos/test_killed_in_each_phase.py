"""A runner killed with SIGKILL in each phase: no job is lost, nothing is repeated unasked. (Slow.)"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models.functions import Now

from console.janitor.models import Watch
from console.jobs.models import Job
from tests.chaos.lossy import LossyNetwork, lossy_network
from tests.chaos.runner.conftest import StartRunner, installation, provider_configuration, start_runner
from tests.database_clock import let_lease_run_out, let_retry_wait_pass
from tests.people import Tenant, fresh
from tests.runner.installation import Installation, Project, new_project, wait_for_end
from tests.runner.processes import RunnerProcess
from tests.runner.terraforms import terraform_on_path
from tests.waiting import wait_until

__all__ = ["installation", "provider_configuration", "start_runner"]

FILES = {"main.tf": 'resource "terraform_data" "one" { input = "x" }'}


class SlowTerraform:
    """Terraform that takes for ever in one of its commands, and leaves a note when it is there."""

    def __init__(self, folder: Path, command: str) -> None:
        self.path, self._note = folder / "terraform", folder / "note"
        self.path.write_text(
            "#!/bin/sh\n"
            f'if [ "$1" = {command} ]; then touch {self._note}; sleep 300; fi\n'
            f'exec {terraform_on_path()} "$@"\n'
        )
        self.path.chmod(0o755)

    def wait_until_there(self) -> None:
        wait_until(self._note.exists, what="Terraform in its slow command")


@pytest.fixture
def project(ours: Tenant) -> Project:
    return new_project(ours, FILES)


@pytest.fixture
def network(installation: Installation) -> Iterator[LossyNetwork]:
    with lossy_network(installation.url) as network:
        yield network


def kill(runner: RunnerProcess) -> None:
    runner.signal(signal.SIGKILL)
    runner.wait()
    runner.wait_until_nothing_runs(seconds=40)


def let_it_be_lost(job: Job) -> Job:
    """The lease runs out at once, and the janitor, which another process is, sees it."""

    def is_taken_back() -> bool:
        Watch.objects.update(patient_until=Now() - timedelta(seconds=1))
        if fresh(job).status in ("CLAIMED", "PROCESSING"):
            let_lease_run_out(job)
        return job.attempts.filter(outcome="lost").exists()

    wait_until(is_taken_back, what="the janitor's look")
    return fresh(job)


@pytest.mark.parametrize("command", ["init", "plan", "show"])
def test_killed_in_a_plan_the_next_runner_finishes_it(
    start_runner: StartRunner, project: Project, tmp_path: Path, command: str
) -> None:
    terraform = SlowTerraform(tmp_path, command)
    runner = start_runner(name="killed", SLIPWAY_TERRAFORM=str(terraform.path))
    job = project.tenant.request(spec=project.spec)
    terraform.wait_until_there()
    assert fresh(job).status == "PROCESSING"
    kill(runner)

    lost = let_it_be_lost(job)
    assert (lost.status, lost.retry_count) == ("QUEUED", 1)
    let_retry_wait_pass(job)
    start_runner(name="next")
    ended = wait_for_end(job)
    assert (ended.status, ended.attempt_count) == ("SUCCESS", 2)
    assert [attempt.outcome for attempt in job.attempts.order_by("number")] == ["lost", "succeeded"]


@pytest.mark.parametrize("command", ["init", "apply"])
def test_killed_in_a_deploy_a_person_decides(
    start_runner: StartRunner, project: Project, tmp_path: Path, command: str
) -> None:
    planner = start_runner(name="planner")
    plan = project.plan()
    planner.signal(signal.SIGTERM)
    planner.wait()
    terraform = SlowTerraform(tmp_path, command)
    runner = start_runner(name="killed", SLIPWAY_TERRAFORM=str(terraform.path))
    job = project.deploy(plan)
    terraform.wait_until_there()
    kill(runner)

    lost = let_it_be_lost(job)
    assert (lost.status, lost.error_code) == ("FAILED", "runner_lost")
    assert "infrastructure may have changed" in lost.error_message
    assert project.resources() == []


def test_killed_before_it_began_the_job_goes_to_the_next_and_costs_no_retry(
    start_runner: StartRunner, project: Project, network: LossyNetwork
) -> None:
    network.swallowed = b'"PROCESSING"'
    runner = start_runner(name="killed", console_url=network.url)
    job = project.tenant.request(spec=project.spec)
    wait_until(lambda: fresh(job).status == "CLAIMED", what="the claim")
    kill(runner)

    lost = let_it_be_lost(job)
    assert (lost.status, lost.retry_count, lost.started_at) == ("QUEUED", 0, None)
    start_runner(name="next")
    assert wait_for_end(job).status == "SUCCESS"


def test_killed_while_it_waited_nothing_is_lost(start_runner: StartRunner, project: Project) -> None:
    runner = start_runner(name="killed")
    wait_until(lambda: "of ours" in runner.log, what="a runner that waits")
    kill(runner)
    job = project.tenant.request(spec=project.spec)
    start_runner(name="next")
    wait_until(job.attempts.exists, what="a claim")
    if job.attempts.filter(runner__name="killed").exists():
        let_it_be_lost(job)  # the console had not yet noticed that nobody waits for its answer
    assert wait_for_end(job).status == "SUCCESS"
    assert fresh(job).retry_count == 0
