"""A runner that is told to stop, or stopped for too long, in the middle of an apply."""

from __future__ import annotations

import signal
import time

from console.jobs.models import JobClaim
from console.runners.models import Runner
from tests.chaos.runner.conftest import StartRunner
from tests.people import Tenant, fresh
from tests.runner.installation import messages, new_project, wait_for_end, wait_for_line
from tests.sample_cloud.mirror import servers
from tests.sample_cloud.service import Cloud
from tests.waiting import wait_until


def test_sigterm_ends_with_a_saved_state_no_lock_and_a_report_within_15_seconds(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud, each_terraform: str
) -> None:
    cloud.latency["second"] = 3
    project = new_project(ours, servers(cloud.url, "first", "second", "third", chained=True))
    runner = start_runner(SLIPWAY_TERRAFORM=each_terraform)
    job = project.deploy()
    cloud.wait_for("create", "second")
    asked_at = time.monotonic()
    runner.signal(signal.SIGTERM)
    assert runner.wait(seconds=15) == 0
    assert time.monotonic() - asked_at < 15
    ended = fresh(job)
    assert (ended.status, ended.error_code) == ("FAILED", "runner_stopped")
    assert project.resources() == ["first", "second"]
    assert cloud.done("create") == ["first", "second"]
    assert not project.is_locked()
    assert not runner.terraform_processes()
    assert not runner.workdirs()
    # A minute of silence would not set this.
    wait_until(lambda: Runner.objects.get().stopped_at, what="the goodbye")
    assert Runner.objects.get().status == "OFFLINE"


def test_a_runner_that_was_frozen_past_its_lease_writes_nothing_afterwards(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud
) -> None:
    cloud.latency["second"] = 60
    project = new_project(ours, servers(cloud.url, "first", "second", "third", chained=True))
    runner = start_runner()
    job = project.deploy()
    cloud.wait_for("create", "second")
    wait_for_line(job, "suite_server.second: Creating")
    runner.signal(signal.SIGSTOP)
    lease_ends_at = JobClaim.objects.get(job=job).expires_at
    assert runner.end_of_terraform() < lease_ends_at, "Terraform outlived the lease"
    ended = wait_for_end(job)
    assert (ended.status, ended.error_code) == ("FAILED", "runner_lost")
    before = messages(job)
    runner.signal(signal.SIGCONT)
    wait_until(lambda: "no longer ours" in runner.log, what="the refusal")
    following = new_project(ours, {"main.tf": ""}, name="following")
    following.plan()
    assert messages(job) == before
    assert fresh(job).status == "FAILED"
    assert cloud.done("create") == ["first", "second"]
