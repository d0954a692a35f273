"""Configurations that are wrong or hostile get a sentence, never a traceback, and harm nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from runner.protocol import JobType
from runner.terraform.workdir import MAX_FILES, UnsafeFile, Workdir
from tests.runner.configurations import deploy_when_planned
from tests.runner.conftest import RunnerProcess
from tests.runner.fake_console import FakeConsole


def test_bad_hcl_gets_an_error_with_file_and_line(console: FakeConsole, runner: RunnerProcess) -> None:
    job = console.enqueue(
        JobType.PLAN, {"main.tf": '\nresource "terraform_data" "a" {\n  input = var.nope\n}\n'}
    )
    final = job.wait_for_end()
    assert (final.status, final.error_code, final.fatal) == ("FAILED", "terraform_failed", True)
    assert final.error_message == "Reference to undeclared input variable at main.tf:3"
    (diagnostic,) = job.data("diagnostic")
    assert (diagnostic["file"], diagnostic["line"]) == ("main.tf", 3)
    assert diagnostic["snippet"]["code"] == "  input = var.nope"
    assert "Traceback" not in job.text


def test_hcl_that_does_not_even_parse_fails_at_init_with_file_and_line(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = console.enqueue(JobType.PLAN, {"main.tf": 'resource "x" {'})
    final = job.wait_for_end()
    assert final.fatal
    assert not job.says("trying again"), "it cannot help"
    assert final.error_message == "Unclosed configuration block at main.tf:1"


def test_a_resource_that_fails_is_reported_with_what_terraform_said(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = deploy_when_planned(
        console,
        {"main.tf": 'resource "terraform_data" "a" {\n  provisioner "local-exec" { command = "exit 3" }\n}'},
    )
    final = job.wait_for_end()
    assert (final.status, final.error_code) == ("FAILED", "terraform_failed")
    assert final.error_message == "local-exec provisioner error at main.tf:2"
    assert job.data("resource")[-1]["event"] == "failed"
    assert job.says("exit status 3")


def test_a_version_that_the_runner_does_not_have_is_explained(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    snapshot = {"format": 1, "files": {"main.tf": ""}, "terraform_version": "< 1.0"}
    job = console.enqueue(JobType.PLAN, snapshot=snapshot)
    final = job.wait_for_end()
    assert final.fatal
    assert "Unsupported Terraform Core version" in str(final.error_message)


@pytest.fixture
def workdir(tmp_path: Path) -> Iterator[Workdir]:
    workdir = Workdir(tmp_path / uuid4().hex[:12])
    workdir.make()
    yield workdir
    workdir.remove()


@pytest.mark.parametrize(
    "name",
    [
        "/etc/cron.d/evil",
        "../evil.tf",
        "modules/../../evil.tf",
        "modules//evil.tf",
        "./evil.tf",
        "",
        "evil\0.tf",
        "evil\n.tf",
        "..\\evil.tf",
        "x" * 600,
        ".terraform/terraform.tfstate",
        "terraform.tfstate",
    ],
)
def test_a_file_name_that_leads_elsewhere_is_refused(workdir: Workdir, name: str) -> None:
    with pytest.raises(UnsafeFile):
        workdir.write(name, "")
    assert not list(workdir.configuration.iterdir())


def test_a_file_below_a_link_or_a_file_is_refused(workdir: Workdir, tmp_path: Path) -> None:
    (workdir.configuration / "link").symlink_to(tmp_path)
    workdir.write("file", "")
    for name in ("link/evil.tf", "file/evil.tf", "file", "link"):
        with pytest.raises(UnsafeFile):
            workdir.write(name, "")
    assert not (tmp_path / "evil.tf").exists()


def test_a_configuration_of_too_many_files_is_refused(workdir: Workdir) -> None:
    for number in range(MAX_FILES):
        workdir.write(f"{number}.tf", "")
    with pytest.raises(UnsafeFile, match="too large"):
        workdir.write("one-more.tf", "")


def test_a_job_with_a_hostile_file_name_fails_for_good(console: FakeConsole, runner: RunnerProcess) -> None:
    names = ("../evil.tf", "slipway.auto.tfvars.json", "slipway_backend_override.tf.json")
    jobs = {name: console.enqueue(JobType.PLAN, {name: "{}"}) for name in names}
    for name, job in jobs.items():
        final = job.wait_for_end()
        assert (final.status, final.error_code, final.fatal) == ("FAILED", "configuration_refused", True)
        assert name in str(final.error_message)


def test_a_configuration_cannot_move_its_state_elsewhere(console: FakeConsole, runner: RunnerProcess) -> None:
    hostile = 'terraform {\n backend "local" {}\n}'
    harmless = console.enqueue(JobType.PLAN, {"main.tf": hostile})
    assert harmless.wait_for_end().status == "SUCCESS"
    job = console.enqueue(JobType.PLAN, {"zz_override.tf": hostile}, spec="other")
    final = job.wait_for_end()
    assert (final.error_code, final.fatal) == ("backend_replaced", True)


def test_an_environment_that_takes_over_the_runner_is_refused(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    names = ("PATH", "LD_PRELOAD", "TF_HTTP_ADDRESS", "TF_CLI_ARGS_apply", "odd name")
    for job in [console.enqueue(JobType.PLAN, {"main.tf": ""}, environment={name: "x"}) for name in names]:
        final = job.wait_for_end()
        assert (final.error_code, final.fatal) == ("environment_refused", True)


def test_a_job_sees_only_what_it_needs_of_the_runners_environment(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = deploy_when_planned(
        console,
        {"main.tf": 'resource "terraform_data" "a" {\n  provisioner "local-exec" { command = "env" }\n}'},
    )
    assert job.wait_for_end().status == "SUCCESS"
    names = {message.split(": ")[-1].split("=")[0] for message in job.messages if "(local-exec): " in message}
    assert not {name for name in names if name.startswith("SLIPWAY_")} - {"SLIPWAY_ATTEMPT"}
    assert "PYTHONWARNINGS" not in names
    assert {"PATH", "HOME", "TF_IN_AUTOMATION"} <= names
