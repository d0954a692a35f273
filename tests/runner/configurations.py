"""Configurations that take their time, for tests that interfere meanwhile."""

from __future__ import annotations

from runner.protocol import JobType
from tests.runner.fake_console import FakeConsole, FakeJob
from tests.runner.processes import RunnerProcess


def sleeping(command: str = "echo begun; sleep 60") -> dict[str, str]:
    """One resource that is made at once, one that takes as long as a command does, one that follows."""
    return {
        "main.tf": f"""
            resource "terraform_data" "before" {{}}
            resource "terraform_data" "slow" {{
              depends_on = [terraform_data.before]
              provisioner "local-exec" {{
                command = <<-EOT
                  {command}
                EOT
              }}
            }}
            resource "terraform_data" "after" {{ depends_on = [terraform_data.slow] }}
        """
    }


def deploy_when_planned(
    console: FakeConsole, files: dict[str, str], *, lease_seconds: int = 60, timeout_seconds: int = 600
) -> FakeJob:
    """Plan, then queue the DEPLOY of that plan."""
    plan = console.enqueue(JobType.PLAN, files)
    assert plan.wait_for_end().status == "SUCCESS", plan.messages
    return console.enqueue(
        JobType.DEPLOY,
        files,
        plan=plan.uploaded,
        lease_seconds=lease_seconds,
        timeout_seconds=timeout_seconds,
    )


def begun(console: FakeConsole, *, lease_seconds: int = 60) -> FakeJob:
    """A DEPLOY whose slow resource is being made at this moment."""
    job = deploy_when_planned(console, sleeping(), lease_seconds=lease_seconds)
    job.wait_for("(local-exec): begun")
    return job


def assert_ended_in_good_order(console: FakeConsole, runner: RunnerProcess) -> None:
    """Require that the apply was interrupted once: nothing runs, the state is saved, its lock is free."""
    assert not runner.terraform_processes()
    assert console.resources() == {"before", "slow"}
    assert not console.state_locks
