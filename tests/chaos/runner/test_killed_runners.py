"""A runner that is killed takes Terraform and its providers with it, and nothing is made twice afterwards."""

from __future__ import annotations

import pytest

from tests.chaos.runner.conftest import StartRunner
from tests.people import Tenant, fresh
from tests.runner.installation import new_project, wait_for_end
from tests.sample_cloud.mirror import servers
from tests.sample_cloud.service import Cloud
from tests.waiting import wait_until


@pytest.mark.parametrize("killed", ["alone", "with watchdog and leash"])
def test_a_killed_runner_leaves_no_process_and_the_next_deploy_finishes_what_it_began(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud, each_terraform: str, killed: str
) -> None:
    cloud.latency["second"] = 3
    project = new_project(ours, servers(cloud.url, "first", "second", "third", chained=True))
    runner = start_runner(SLIPWAY_TERRAFORM=each_terraform)
    job = project.deploy()
    cloud.wait_for("create", "second")
    assert "terraform-provider-suite" in runner.programs()
    watchdogs, leashes = runner.watchdogs(), runner.leashes()
    runner.kill_with(*(watchdogs if "watchdog" in killed else []), *(leashes if "leash" in killed else []))
    runner.wait_until_nothing_runs(seconds=40)
    if "leash" not in killed:  # else nobody is left to do it before the next start
        wait_until(lambda: not runner.workdirs(), what="the removal of the working directory")
    assert project.resources() == ["first", "second"]
    assert not project.is_locked()

    ended = wait_for_end(job)
    assert (ended.status, ended.error_code) == ("FAILED", "runner_lost")
    # In the same place: it also clears up what nobody was left for.
    start_runner("--data-dir", str(runner.data_dir), name="next", SLIPWAY_TERRAFORM=each_terraform)
    assert wait_for_end(project.deploy()).status == "SUCCESS"
    assert project.resources() == ["first", "second", "third"]
    assert cloud.done("create") == ["first", "second", "third"]
    assert not cloud.done("delete")
    assert fresh(job).attempt_count == 1
    wait_until(lambda: not runner.workdirs(), what="the removal of the working directories")
