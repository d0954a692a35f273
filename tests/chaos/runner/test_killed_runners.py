"""A runner that is killed takes Terraform and its providers with it, and nothing is made twice afterwards."""

from __future__ import annotations

import signal

from tests.chaos.runner.conftest import StartRunner
from tests.cloud.mirror import servers
from tests.cloud.service import Cloud
from tests.people import Tenant, fresh
from tests.runner.installation import new_project, wait_for_end
from tests.waiting import wait_until


def test_a_killed_runner_leaves_no_process_and_the_next_deploy_finishes_what_it_began(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud, each_terraform: str
) -> None:
    cloud.latency["second"] = 3
    project = new_project(ours, servers(cloud.url, "first", "second", "third", chained=True))
    runner = start_runner(SLIPWAY_TERRAFORM=each_terraform)
    job = project.deploy()
    cloud.wait_for("create", "second")
    assert "terraform-provider-suite" in runner.programs()
    runner.signal(signal.SIGKILL)
    runner.wait_until_nothing_runs(seconds=40)
    wait_until(lambda: not runner.workdirs(), what="the removal of the work directory")
    assert project.resources() == ["first", "second"]
    assert not project.is_locked()

    ended = wait_for_end(job)
    assert (ended.status, ended.error_code) == ("FAILED", "runner_lost")
    start_runner(name="next", SLIPWAY_TERRAFORM=each_terraform)
    assert wait_for_end(project.deploy()).status == "SUCCESS"
    assert project.resources() == ["first", "second", "third"]
    assert cloud.done("create") == ["first", "second", "third"]
    assert not cloud.done("delete")
    assert fresh(job).attempt_count == 1
