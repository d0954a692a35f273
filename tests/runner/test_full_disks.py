"""A disk that is full costs the job, never the truth about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.protocol import JobType
from tests.runner.configurations import deploy_when_planned, sleeping
from tests.runner.fake_console import CREDENTIAL, FakeConsole
from tests.runner.processes import ON_A_SMALL_DISK, fill, spawn_runner
from tests.runner.terraforms import terraform_on_path


@pytest.fixture
def disk(console: FakeConsole, tmp_path: Path) -> Iterator[Path]:
    """The small disk of a runner that is running on it."""
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    runner = spawn_runner(
        console_url=console.url,
        data_dir=data_dir,
        log=tmp_path / "runner.log",
        environ={"SLIPWAY_TERRAFORM": terraform_on_path(), "SLIPWAY_RUNNER_CREDENTIAL": CREDENTIAL},
        through=[*ON_A_SMALL_DISK, str(data_dir)],
    )
    yield Path(f"/proc/{runner.process.pid}/root{data_dir}")
    runner.end()


def test_a_full_disk_is_told_in_one_sentence_and_got_over(console: FakeConsole, disk: Path) -> None:
    first = console.enqueue(JobType.PLAN, {"main.tf": ""})
    assert first.wait_for_end().status == "SUCCESS"
    fill(disk)
    job = console.enqueue(JobType.PLAN, {"main.tf": "# " + "x" * 100_000})
    final = job.wait_for_end()
    assert (final.status, final.fatal) == ("FAILED", False)
    assert "disk is full" in str(final.error_message)
    (disk / "filling").unlink()
    again = console.enqueue(JobType.PLAN, {"main.tf": ""}, spec="again")
    assert again.wait_for_end().status == "SUCCESS"


def test_a_disk_that_fills_up_during_an_apply_does_not_end_it(console: FakeConsole, disk: Path) -> None:
    job = deploy_when_planned(console, sleeping("echo begun; sleep 2; seq 1 2000"))
    job.wait_for("(local-exec): begun")
    fill(disk)
    final = job.wait_for_end()
    assert console.resources() == {"before", "slow", "after"}
    assert not console.state_locks
    assert final.status == "SUCCESS", final
    assert final.log == job.receipt


def test_a_state_that_neither_the_console_nor_the_disk_takes_is_uploaded_all_the_same(
    console: FakeConsole, disk: Path
) -> None:
    """Terraform then leaves an empty `errored.tfstate`; the relay has what it wanted to save."""
    job = deploy_when_planned(console, sleeping("echo begun; sleep 2"))
    job.wait_for("(local-exec): begun")
    console.refused_state_writes = 100
    fill(disk)
    assert job.wait_for_end().status == "FAILED"
    state = json.loads(console.errored_states[job.claim.job_id])
    assert {resource["name"] for resource in state["resources"]} == {"before", "slow", "after"}
    assert job.says("It is kept with this job")
