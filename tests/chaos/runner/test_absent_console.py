"""The console goes away in the middle of an apply: for a while, or for longer than the lease."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from console.jobs.log.selectors import log_completeness
from console.jobs.models import Job
from runner.stopping import Lease
from tests.chaos.runner.conftest import StartRunner
from tests.people import Tenant, fresh
from tests.runner.installation import (
    Installation,
    Project,
    messages,
    new_project,
    wait_for_end,
    wait_for_line,
)
from tests.runner.processes import RunnerProcess
from tests.sample_cloud.mirror import servers
from tests.sample_cloud.service import Cloud
from tests.waiting import wait_until

#: A server that takes its time, and a script that counts beside it.
COUNTING = """
resource "terraform_data" "counting" {{
  provisioner "local-exec" {{ command = "for i in $(seq 1 {count}); do echo count $i; sleep 0.1; done" }}
}}
"""


def counted(job: Job) -> list[str]:
    return [message.split(": ")[-1] for message in messages(job) if "(local-exec): count" in message]


def counting_project(tenant: Tenant, cloud: Cloud, *names: str, count: int) -> Project:
    files = servers(cloud.url, *names, chained=True)
    return new_project(tenant, files | {"counting.tf": COUNTING.format(count=count)})


def test_no_line_is_lost_or_doubled_and_the_apply_goes_on_while_the_console_is_away(
    patient_installation: Installation, start_runner: StartRunner, ours: Tenant, cloud: Cloud
) -> None:
    """All of the work, and its first save, fall into the outage."""
    cloud.latency["first"] = 2
    project = counting_project(ours, cloud, "first", "second", count=25)
    start_runner(console_url=patient_installation.url)
    job = project.deploy()
    wait_for_line(job, "count 3")
    patient_installation.kill_console()
    cloud.wait_for("create", "second")
    patient_installation.start_console()
    assert wait_for_end(job).status == "SUCCESS", messages(job)[-5:]
    assert counted(job) == [f"count {number}" for number in range(1, 26)]
    assert log_completeness(fresh(job)) == "complete"
    assert project.resources() == ["counting", "first", "second"]
    assert cloud.done("create") == ["first", "second"]
    assert not project.is_locked()


def test_terraform_is_gone_before_a_lease_that_cannot_be_renewed_and_its_state_arrives_later(
    installation: Installation, start_runner: StartRunner, ours: Tenant, cloud: Cloud
) -> None:
    cloud.latency["second"] = 3
    names = ["first", "second", *(f"later-{number}" for number in range(40))]
    for name in names[2:]:
        cloud.latency[name] = 1
    project = new_project(ours, servers(cloud.url, *names, chained=True))
    runner = start_runner()
    job = project.deploy()
    cloud.wait_for("create", "second")
    installation.kill_console()
    away_since = time.monotonic()
    runner.wait_until_nothing_runs(seconds=installation.lease_seconds)
    assert time.monotonic() - away_since > 2.5, "it was interrupted at the first missed heartbeat"
    created = cloud.done("create")
    wait_until(lambda: time.monotonic() - away_since > installation.lease_seconds, seconds=20)
    installation.start_console()
    ended = wait_for_end(job)
    assert ended.status == "FAILED"
    assert cloud.done("create") == created, "something went on after the end of the lease"
    assert_nothing_is_forgotten(project, runner, job, created)


def assert_nothing_is_forgotten(
    project: Project, runner: RunnerProcess, job: Job, servers: list[str]
) -> None:
    """Require every server in the saved state, or in the one that was uploaded with the job."""

    def is_known() -> bool:
        return project.resources() == sorted(servers) or "kept by the console" in runner.log

    wait_until(is_known, what=f"a state with {servers}; the job says {messages(job)[-3:]}")


@pytest.mark.timeout(300)
def test_a_console_that_is_away_for_a_whole_minute(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud, tmp_path: Path
) -> None:
    """With the lease that installations have. Terraform saves every 20 s, so its saves fall into the outage.

    Two minutes long: `make soak` asks for it. Without that, this is a look at the figures it relies on.
    """
    if not os.environ.get("SOAK"):
        lease = Lease(sent_at=0.0, lease_seconds=120)
        assert lease.interrupt_at > 90
        return
    installation = Installation(tmp_path, lease_seconds=120)
    installation.start()
    try:
        names = [f"server-{number}" for number in range(14)]
        cloud.latency.update(dict.fromkeys(names, 6.0))
        project = counting_project(ours, cloud, *names, count=800)
        start_runner(name="soaked", console_url=installation.url)
        job = project.deploy()
        wait_for_line(job, "count 20")
        installation.kill_console()
        since = time.monotonic()
        wait_until(lambda: time.monotonic() - since > 60, seconds=70, what="a minute")
        installation.start_console()
        assert wait_for_end(job, seconds=150).status == "SUCCESS", messages(job)[-5:]
        assert counted(job) == [f"count {number}" for number in range(1, 801)]
        assert sorted(cloud.done("create")) == sorted(names)
        assert not re.search("errored", "\n".join(messages(job)))
    finally:
        installation.stop()
