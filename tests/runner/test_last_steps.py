"""The last step of a blueprint is a phase of its own inside the apply: with real Terraform."""

from __future__ import annotations

from typing import Any

from runner.protocol import JobType
from tests.runner.conftest import RunnerProcess
from tests.runner.fake_console import FakeConsole, FakeJob

#: Like a platform: something that takes its time, then what is installed into it, then what points at that.
PLATFORM = """
    resource "terraform_data" "cluster" {}
    resource "terraform_data" "argocd" {
      count      = 1
      depends_on = [terraform_data.cluster]
      provisioner "local-exec" { command = "COMMAND" }
    }
    resource "terraform_data" "record" { depends_on = [terraform_data.argocd] }
    output "argocd_url" { value = "https://argocd.example" }
"""
LAST_STEP = {"phase": "argocd", "title": "Installing Argo CD", "addresses": ["terraform_data.argocd"]}


def deployed(console: FakeConsole, *, command: str = "true", **last_step: Any) -> FakeJob:
    """A DEPLOY of the platform that has ended, made from a blueprint with a last step."""
    files = {"main.tf": PLATFORM.replace("COMMAND", command)}
    source = {"kind": "blueprint", "name": "platform", "last_step": {**LAST_STEP, **last_step}}
    snapshot = {"format": 1, "source": source, "files": files, "terraform_version": None}
    plan = console.enqueue(JobType.PLAN, files)
    assert plan.wait_for_end().status == "SUCCESS", plan.messages
    assert "argocd" not in {phase["phase"] for phase in plan.data("phase")}
    assert plan.uploaded is not None
    # The hash is the reviewed plan's: what is looked at here is the phase.
    job = console.enqueue(
        JobType.DEPLOY,
        files,
        plan=plan.uploaded,
        snapshot=snapshot,
        snapshot_hash=plan.uploaded.reference().snapshot_hash,
    )
    job.wait_for_end()
    return job


def phases(job: FakeJob) -> list[tuple[str, str]]:
    """The beginnings and ends of the last phases, with the events of resources between them."""
    documents = [(line.get("data") or {}) for line in job.lines]
    events = [
        (str(data.get("phase") or data.get("address")), str(data["event"]))
        for data in documents
        if data.get("kind") in ("phase", "resource") and data.get("event") not in ("planned", "progress")
    ]
    return events[events.index(("apply", "start")) :]


def test_it_begins_with_its_resource_and_ends_with_it(console: FakeConsole, runner: RunnerProcess) -> None:
    job = deployed(console)
    assert job.statuses == ["PROCESSING", "SUCCESS"], job.messages
    assert phases(job) == [
        ("apply", "start"),
        ("terraform_data.cluster", "started"),
        ("terraform_data.cluster", "done"),
        ("argocd", "start"),
        ("terraform_data.argocd[0]", "started"),
        ("terraform_data.argocd[0]", "done"),
        ("argocd", "end"),
        ("terraform_data.record", "started"),
        ("terraform_data.record", "done"),
        ("apply", "end"),
    ]
    assert job.says("Installing Argo CD")
    (end,) = [data for data in job.data("phase") if (data["phase"], data["event"]) == ("argocd", "end")]
    assert end["seconds"] >= 0 and "failed" not in end


def test_it_lasts_until_the_last_of_what_is_planned(console: FakeConsole, runner: RunnerProcess) -> None:
    job = deployed(console, addresses=["terraform_data.argocd", "terraform_data.record", "module.not_there"])
    assert phases(job)[-3:] == [("terraform_data.record", "done"), ("argocd", "end"), ("apply", "end")]
    assert phases(job).count(("argocd", "start")) == 1


def test_one_that_fails_says_so(console: FakeConsole, runner: RunnerProcess) -> None:
    also = ["terraform_data.argocd", "terraform_data.record"]
    job = deployed(console, command="exit 3", addresses=also)
    assert job.statuses == ["PROCESSING", "FAILED"]
    (end,) = [data for data in job.data("phase") if (data["phase"], data["event"]) == ("argocd", "end")]
    assert end["failed"] is True
    assert phases(job)[-2:] == [("argocd", "end"), ("apply", "end")]


def test_nothing_is_said_of_one_that_is_not_in_the_plan(console: FakeConsole, runner: RunnerProcess) -> None:
    job = deployed(console, addresses=["helm_release.argocd"])
    assert job.statuses == ["PROCESSING", "SUCCESS"]
    assert "argocd" not in {phase["phase"] for phase in job.data("phase")}
