"""PLAN, DEPLOY and DESTROY from the claim to the final report."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.protocol import JobType
from tests.process_table import command_line, environment_of
from tests.runner.configurations import deploy_when_planned, sleeping
from tests.runner.conftest import RunnerProcess, StartRunner
from tests.runner.fake_console import CREDENTIAL, FakeConsole, FakeJob
from tests.runner.terraforms import terraform_on_path

FILES = {
    "main.tf": """
        variable "region" { type = string }
        variable "secret" {
          type      = string
          sensitive = true
        }
        resource "terraform_data" "network" { input = var.region }
        resource "terraform_data" "server" {
          count = 2
          input = "${terraform_data.network.output}-${count.index}"
        }
        resource "terraform_data" "key" { input = var.secret }
        output "servers" { value = terraform_data.server[*].output }
        output "key" {
          value     = terraform_data.key.output
          sensitive = true
        }
    """,
    "modules/readme/notes.md": "not Terraform, but part of the configuration",
}
ADDRESSES = {
    "terraform_data.network", "terraform_data.server[0]", "terraform_data.server[1]", "terraform_data.key",
}  # fmt: skip
VARIABLES = {"region": "eu-west-1", "secret": "hunter2 & friends"}


def planned(console: FakeConsole, type: JobType = JobType.PLAN) -> FakeJob:
    return console.enqueue(type, FILES, variables=VARIABLES, sensitive=["secret"])


def test_a_plan_is_uploaded_with_its_summary_and_fingerprint(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = planned(console)
    final = job.wait_for_end()
    assert job.statuses == ["PROCESSING", "SUCCESS"], runner.log
    assert final.result == {
        "plan_id": "plan-1",
        "summary": {"add": 4, "change": 0, "replace": 0, "destroy": 0, "import": 0, "move": 0},
    }
    assert job.uploaded is not None
    assert job.uploaded.file.startswith(b"PK")
    assert job.uploaded.fingerprint["state_lineage"] == ""
    assert job.uploaded.fingerprint["state_serial"] == 0
    assert [phase["phase"] for phase in job.data("phase") if phase["event"] == "start"] == [
        "prepare", "init", "plan", "upload",
    ]  # fmt: skip
    assert {event["address"] for event in job.data("resource") if event["event"] == "planned"} == ADDRESSES
    assert not runner.workdirs()


def test_the_log_that_arrives_is_the_log_that_was_written(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = planned(console)
    assert job.wait_for_end().log == job.receipt
    assert job.messages[0].startswith("Runner suite, Terraform ")
    assert job.messages[-1] == "PLAN succeeded"


def test_what_was_planned_is_deployed_and_then_destroyed(
    console: FakeConsole, start_runner: StartRunner, each_terraform: str
) -> None:
    start_runner(SLIPWAY_TERRAFORM=each_terraform)
    plan = planned(console)
    plan.wait_for_end()
    deploy = console.enqueue(
        JobType.DEPLOY, FILES, variables=VARIABLES, sensitive=["secret"], plan=plan.uploaded
    )
    deployed = deploy.wait_for_end()
    assert deployed.status == "SUCCESS", deploy.messages
    assert deployed.result == {
        "summary": {"add": 4, "change": 0, "destroy": 0},
        "outputs": {
            "servers": {
                "type": ["tuple", ["string", "string"]],
                "sensitive": False,
                "value": ["eu-west-1-0", "eu-west-1-1"],
            },
            "key": {"type": "string", "sensitive": True},
        },
    }
    assert console.resources() == {"network", "server", "key"}
    assert {event["address"] for event in deploy.data("resource") if event["event"] == "done"} == ADDRESSES

    destroy = planned(console, JobType.DESTROY)
    destroyed = destroy.wait_for_end()
    assert destroyed.status == "SUCCESS", destroy.messages
    assert destroyed.result == {"summary": {"add": 0, "change": 0, "destroy": 4}}
    assert console.resources() == set()
    assert not console.state_locks


def test_a_plan_without_changes_is_a_success(console: FakeConsole, runner: RunnerProcess) -> None:
    job = console.enqueue(JobType.PLAN, {"main.tf": "locals {}"})
    final = job.wait_for_end()
    assert final.status == "SUCCESS"
    assert final.result is not None
    assert set(final.result["summary"].values()) == {0}


def test_secrets_leave_the_runner_in_no_form(console: FakeConsole, runner: RunnerProcess) -> None:
    files = FILES | {
        "leak.tf": """
            resource "terraform_data" "leak" {
              provisioner "local-exec" {
                command = "echo it is $LEAKED_TOKEN; echo $TF_HTTP_PASSWORD; printf %s $LEAKED_TOKEN | base64"
              }
            }
        """
    }
    environment = {"LEAKED_TOKEN": "tok-5up3r-s3cret"}
    options = {"variables": VARIABLES, "sensitive": ["secret"], "environment": environment}
    plan = console.enqueue(JobType.PLAN, files, **options)  # type: ignore[arg-type]
    plan.wait_for_end()
    deploy = console.enqueue(JobType.DEPLOY, files, plan=plan.uploaded, **options)  # type: ignore[arg-type]
    assert deploy.wait_for_end().status == "SUCCESS", deploy.messages
    assert plan.uploaded is not None
    assert plan.uploaded.document["variables"]["secret"]["value"] == "(sensitive)"
    assert deploy.says("it is ***")
    reported = deploy.text + plan.text + str(plan.uploaded.document) + runner.log
    for secret in ("hunter2", "5up3r", "state-password", "dG9rLTV1cDNyL", "slr_"):
        assert secret not in reported


def test_secrets_are_in_no_command_line_and_in_no_environment_but_terraforms(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    """Read them while Terraform, its shell, the watchdog and the relay are all at work."""
    environment = {"A_TOKEN": "tok-5up3r-s3cret"}
    files = FILES | {"slow.tf": sleeping()["main.tf"]}
    options = {"variables": VARIABLES, "sensitive": ["secret"], "environment": environment}
    plan = console.enqueue(JobType.PLAN, files, **options)  # type: ignore[arg-type]
    plan.wait_for_end()
    job = console.enqueue(JobType.DEPLOY, files, plan=plan.uploaded, **options)  # type: ignore[arg-type]
    job.wait_for("(local-exec): begun")
    own, working = runner.own_processes(), runner.terraform_processes()
    assert len(own) == 3, "the runner, its watchdog and its relay"
    assert "sleep" in runner.programs()
    for secret in ("hunter2", "5up3r", "state-password", CREDENTIAL):
        assert secret not in "".join(map(command_line, (*own, *working)))
        assert secret not in "".join(map(environment_of, own[1:]))
    for secret in ("hunter2", CREDENTIAL):
        assert secret not in "".join(map(environment_of, working))


def test_a_job_has_its_own_process_group_private_files_and_limits_and_no_core_dumps(
    console: FakeConsole, start_runner: StartRunner
) -> None:
    runner = start_runner("--limit", "nofile=4321", "--limit", "fsize=1073741824")
    group = "$(cut -d ' ' -f 5 /proc/$$/stat)"
    command = (
        f"echo umask $(umask), mode $(stat -c %a $PWD), core $(ulimit -c), files $(ulimit -n), group {group}"
    )
    job = deploy_when_planned(console, sleeping(command))
    assert job.wait_for_end().status == "SUCCESS"
    message = next(message for message in job.messages if "(local-exec): umask" in message)
    assert "umask 0077, mode 700, core 0, files 4321, group" in message
    assert int(message.split()[-1]) != os.getpgid(runner.process.pid)


def test_a_job_cannot_read_the_environment_that_its_runner_was_started_with(
    console: FakeConsole, start_runner: StartRunner
) -> None:
    """Under the same account, if that is not an administrator's."""
    runner = start_runner(through=("setpriv", "--bounding-set=-all", "--inh-caps=-all"))
    look = f"cat /proc/self/environ && echo own; cat /proc/{runner.process.pid}/environ || echo no other"
    job = deploy_when_planned(console, sleeping(look))
    assert job.wait_for_end().status == "SUCCESS"
    printed = [message for message in job.messages if "(local-exec):" in message]
    assert printed[-1].endswith(": no other")
    assert any(message.endswith("own") for message in printed[1:-1])
    assert CREDENTIAL not in "".join(printed)


def test_an_init_that_fails_for_a_moment_is_tried_again(
    console: FakeConsole, start_runner: StartRunner, tmp_path: Path
) -> None:
    hesitant = tmp_path / "hesitant"
    hesitant.write_text(f"""#!/bin/sh
        if [ "$1" = init ] && [ ! -e {tmp_path}/tried ]; then
            touch {tmp_path}/tried; echo 'Failed to query available provider packages'; exit 1
        fi
        exec {terraform_on_path()} "$@"
    """)
    hesitant.chmod(0o755)
    start_runner(SLIPWAY_TERRAFORM=str(hesitant))
    job = console.enqueue(JobType.PLAN, {"main.tf": ""})
    assert job.wait_for_end().status == "SUCCESS", job.messages
    assert job.says("Failed to query available provider packages")
    assert job.says("init failed; trying again in 2 s")


def test_opentofu_works_the_same_and_is_called_by_its_name(
    console: FakeConsole, start_runner: StartRunner, tmp_path: Path
) -> None:
    """This machine has none: a program named `tofu` runs Terraform."""
    tofu = tmp_path / "bin" / "tofu"
    tofu.parent.mkdir()
    tofu.write_text(f"""#!/bin/sh
        if [ "$1" = version ]; then echo "OpenTofu v1.9.1"; exit; fi
        exec {terraform_on_path()} "$@"
    """)
    tofu.chmod(0o755)
    start_runner(SLIPWAY_TERRAFORM="", PATH=str(tofu.parent))
    job = planned(console)
    assert job.wait_for_end().status == "SUCCESS", job.messages
    assert job.messages[0] == "Runner suite, OpenTofu 1.9.1"
    assert console.facts[0].terraform_version == "1.9.1 (OpenTofu)"


def test_a_secret_that_is_printed_in_two_pieces_is_masked(
    console: FakeConsole, start_runner: StartRunner, tmp_path: Path
) -> None:
    """A Terraform that says the first half, and the second one much later: two reads of the runner."""
    slow = tmp_path / "slow"
    slow.write_text(f"""#!/bin/sh
        if [ "$1" = plan ]; then printf 'it is tok-5up3r'; sleep 0.5; printf -- '-s3cret indeed\\n'; fi
        exec {terraform_on_path()} "$@"
    """)
    slow.chmod(0o755)
    start_runner(SLIPWAY_TERRAFORM=str(slow))
    job = console.enqueue(JobType.PLAN, {"main.tf": ""}, environment={"A_TOKEN": "tok-5up3r-s3cret"})
    assert job.wait_for_end().status == "SUCCESS"
    assert "it is *** indeed" in job.messages
    assert "5up3r" not in job.text


def test_a_deploy_of_a_plan_whose_state_moved_on_is_refused(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    first, second = planned(console), planned(console)
    first.wait_for_end()
    second.wait_for_end()
    options = {"variables": VARIABLES, "sensitive": ["secret"]}
    deployed = console.enqueue(JobType.DEPLOY, FILES, plan=first.uploaded, **options)  # type: ignore[arg-type]
    assert deployed.wait_for_end().status == "SUCCESS"
    stale = console.enqueue(JobType.DEPLOY, FILES, plan=second.uploaded, **options)  # type: ignore[arg-type]
    final = stale.wait_for_end()
    assert (final.status, final.error_code, final.fatal) == ("FAILED", "plan_stale", True)
    assert "the state was replaced" in str(final.error_message)
    assert "Plan again" in str(final.error_message)


def test_a_plan_file_that_is_not_the_reviewed_one_is_refused(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    plan = planned(console)
    plan.wait_for_end()
    assert plan.uploaded is not None
    deploy = console.enqueue(JobType.DEPLOY, FILES, variables=VARIABLES, plan=plan.uploaded, spec="other")
    plan.uploaded.file += b"one byte more"
    final = deploy.wait_for_end()
    assert (final.status, final.error_code, final.fatal) == ("FAILED", "plan_stale", True)
    assert not console.states


def test_a_configuration_that_changed_since_the_plan_is_refused(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    plan = planned(console)
    plan.wait_for_end()
    changed = FILES | {"more.tf": 'resource "terraform_data" "more" {}'}
    deploy = console.enqueue(JobType.DEPLOY, changed, variables=VARIABLES, plan=plan.uploaded)
    final = deploy.wait_for_end()
    assert (final.status, final.error_code) == ("FAILED", "plan_stale")
    assert not console.states


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        ("terraform_version", "1.0.0", "Terraform 1.0.0 made it, and this runner has"),
        ("provider_lock_sha256", "f" * 64, "the provider lock is not the one that was reviewed"),
    ],
)
def test_a_plan_of_other_tools_is_refused(
    console: FakeConsole, runner: RunnerProcess, part: str, value: str, why: str
) -> None:
    plan = planned(console)
    plan.wait_for_end()
    assert plan.uploaded is not None
    plan.uploaded.fingerprint[part] = value
    deploy = console.enqueue(JobType.DEPLOY, FILES, variables=VARIABLES, plan=plan.uploaded)
    final = deploy.wait_for_end()
    assert (final.status, final.error_code) == ("FAILED", "plan_stale")
    assert why in str(final.error_message)
    assert not console.states
