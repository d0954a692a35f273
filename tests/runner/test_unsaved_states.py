"""A state that Terraform could not save is never lost."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from runner.protocol import JobType
from runner.terraform.workdir import DataDirectory
from tests.runner.configurations import deploy_when_planned, sleeping
from tests.runner.conftest import RunnerProcess, StartRunner
from tests.runner.fake_console import FakeConsole, Foreign
from tests.runner.terraforms import terraform_on_path
from tests.waiting import wait_until

FILES = {"main.tf": 'resource "terraform_data" "made" {}'}


def test_the_runner_pushes_a_state_that_terraform_could_not_save(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    console.refused_state_writes = 1
    job = deploy_when_planned(console, FILES)
    final = job.wait_for_end()
    assert final.status == "FAILED"
    assert job.says("the runner has pushed it")
    assert console.resources() == {"made"}
    assert not console.state_locks


def test_a_state_that_nobody_saves_is_uploaded_with_the_job_and_the_log_says_what_to_do(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    console.refused_state_writes = 100
    job = deploy_when_planned(console, FILES)
    assert job.wait_for_end().status == "FAILED"
    assert json.loads(console.errored_states[job.claim.job_id])["resources"][0]["name"] == "made"
    assert job.says(f"/api/jobs/{job.claim.job_id}/errored-states/{job.claim.claim_id}")
    assert job.says("terraform state push errored.tfstate")
    assert not list((runner.data_dir / "rescued").iterdir())


def test_a_state_that_the_console_does_not_take_waits_on_the_runner_until_it_does(
    console: FakeConsole, runner: RunnerProcess, start_runner: StartRunner
) -> None:
    console.refused_state_writes, console.refuses_errored_states = 100, True
    job = deploy_when_planned(console, FILES)
    assert job.wait_for_end().status == "FAILED"
    (file,) = (runner.data_dir / "rescued").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["resources"][0]["name"] == "made"
    assert job.says(str(file))
    assert job.says("terraform state push")

    console.refuses_errored_states = False
    runner.process.terminate()
    runner.wait()
    start_runner()
    wait_until(lambda: job.claim.job_id in console.errored_states, what="the upload of the kept state")
    wait_until(lambda: not file.exists(), what="the removal of the file")


def test_the_state_of_a_terraform_that_was_killed_while_it_saved_is_uploaded(
    console: FakeConsole, start_runner: StartRunner
) -> None:
    """Terraform has written no `errored.tfstate` by then, and still waits for an answer."""
    start_runner(SLIPWAY_RUNNER_STOP_GRACE="1")
    job = deploy_when_planned(console, sleeping("echo begun; sleep 1"))
    job.wait_for("(local-exec): begun")
    console.answer_instead("^POST /state/demo$", Foreign(503), times=10_000)
    job.wait_for("terraform_data.after: Creation complete")
    job.cancel = "person"
    job.wait_for("Two interrupts received")
    console.refused_state_writes = 100
    console.answer_again()
    assert job.wait_for_end().status == "CANCELLED"
    state = json.loads(console.errored_states[job.claim.job_id])
    assert {resource["name"] for resource in state["resources"]} == {"before", "slow", "after"}


def test_a_state_that_no_step_cared_for_is_kept_and_uploaded(
    console: FakeConsole, start_runner: StartRunner, tmp_path: Path
) -> None:
    script = tmp_path / "leaving"
    script.write_text(f"""#!/bin/sh
        if [ "$1" = plan ]; then echo '{{"serial": 7}}' > errored.tfstate; fi
        exec {terraform_on_path()} "$@"
    """)
    script.chmod(0o755)
    runner = start_runner(SLIPWAY_TERRAFORM=str(script))
    job = console.enqueue(JobType.PLAN, FILES)
    job.wait_for_end()
    assert job.says(f"/api/jobs/{job.claim.job_id}/errored-states/{job.claim.claim_id}")
    wait_until(lambda: job.claim.job_id in console.errored_states, what="the upload")
    assert json.loads(console.errored_states[job.claim.job_id]) == {"serial": 7}
    assert not runner.workdirs()


@pytest.mark.parametrize("folder", ["configuration", "configuration/infrastructure/production"])
def test_a_state_that_a_killed_attempt_left_is_found_in_whatever_folder_it_worked(
    tmp_path: Path, folder: str
) -> None:
    data = DataDirectory(tmp_path)
    data.prepare()
    workdir = data.workdir(uuid4().hex)
    workdir.make()
    workdir.record_attempt(job_id="the-job", claim_id="the-claim")
    for place in (folder, "configuration/.terraform/modules/theirs"):
        (workdir.path / place).mkdir(parents=True, exist_ok=True)
        (workdir.path / place / "errored.tfstate").write_text(place)
    data.sweep(grace_seconds=0)
    ((job_id, claim_id, file),) = data.rescued_states()
    assert (job_id, claim_id, file.read_text()) == ("the-job", "the-claim", folder)
    assert not list(data.work.iterdir())
