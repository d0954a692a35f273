"""Terraform's command lines, its messages, and which Terraform it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.protocol import LogLevel
from runner.terraform.binary import TerraformMissing, find_terraform
from runner.terraform.commands import (
    apply_args,
    init_args,
    output_args,
    plan_args,
    show_args,
    state_pull_args,
    state_push_args,
)
from runner.terraform.output import OutputReader

PLAN = Path("/work dir/plan")


def test_each_command_line_is_spelled_out() -> None:
    assert init_args() == ["init", "-input=false", "-json"]
    assert init_args(speaks_json=False) == ["init", "-input=false", "-no-color"]
    assert plan_args(out=PLAN, variables="v.json") == [
        "plan", "-json", "-input=false", "-detailed-exitcode", "-var-file=v.json", "-out=/work dir/plan",
        "-lock-timeout=30s",
    ]  # fmt: skip
    assert plan_args(out=PLAN, variables="v.json", destroy=True) == [
        "plan", "-json", "-input=false", "-detailed-exitcode", "-destroy", "-var-file=v.json",
        "-out=/work dir/plan", "-lock-timeout=30s",
    ]  # fmt: skip
    assert plan_args(out=PLAN, variables="v.json", refresh_only=True) == [
        "plan", "-json", "-input=false", "-detailed-exitcode", "-refresh-only", "-var-file=v.json",
        "-out=/work dir/plan", "-lock=false",
    ]  # fmt: skip
    assert apply_args(plan=PLAN) == ["apply", "-json", "-input=false", "-lock-timeout=30s", "/work dir/plan"]
    assert show_args(plan=PLAN) == ["show", "-json", "/work dir/plan"]
    assert output_args() == ["output", "-json"]
    assert state_pull_args() == ["state", "pull"]
    assert state_push_args(file=PLAN) == ["state", "push", "-lock-timeout=30s", "/work dir/plan"]


def message(type: str, at: str = "2026-01-01T00:00:00.000000Z", **body: Any) -> str:
    return json.dumps({"@level": "info", "@message": "text", "@timestamp": at, "type": type, **body})


RESOURCE = {"addr": "module.a.terraform_data.x", "module": "module.a", "resource_type": "terraform_data"}


def test_a_resources_way_is_told_with_its_duration() -> None:
    reader = OutputReader()
    hook = {"resource": RESOURCE, "action": "create"}
    start = reader.read(message("apply_start", hook=hook))
    done = reader.read(
        message("apply_complete", "2026-01-01T00:00:01.250000Z", hook=hook | {"elapsed_seconds": 1})
    )
    facts = {
        "kind": "resource", "address": "module.a.terraform_data.x", "module": "module.a",
        "type": "terraform_data", "action": "create",
    }  # fmt: skip
    assert start.data == facts | {"event": "started"}
    assert done.data == facts | {"event": "done", "seconds": 1.25}


def test_a_plans_resources_are_told_with_what_will_happen_to_them() -> None:
    reader = OutputReader()
    imported = {"resource": RESOURCE, "action": "noop", "importing": {"id": "i"}}
    event = reader.read(message("planned_change", change=imported))
    assert event.data is not None
    assert (event.data["event"], event.data["action"]) == ("planned", "import")
    drift = reader.read(message("resource_drift", change={"resource": RESOURCE, "action": "update"}))
    assert drift.data is not None
    assert drift.data["kind"] == "drift"


def test_a_diagnostic_is_one_line_with_its_place_and_a_card() -> None:
    reader = OutputReader()
    diagnostic = {
        "severity": "error", "summary": "No such\nthing", "detail": "Look\nelsewhere.", "address": "a.b",
        "range": {"filename": "main.tf", "start": {"line": 7}}, "snippet": {"code": "x = 1", "start_line": 7},
    }  # fmt: skip
    event = reader.read(message("diagnostic", diagnostic=diagnostic))
    assert event.message == "Error: No such thing at main.tf:7: Look elsewhere."
    assert event.level == LogLevel.ERROR
    assert event.data is not None
    assert event.data["detail"] == "Look\nelsewhere."
    assert reader.errors[0].sentence == "No such thing at main.tf:7"
    warning = reader.read(message("diagnostic", diagnostic=diagnostic | {"severity": "warning"}))
    assert warning.level == LogLevel.WARN
    assert len(reader.errors) == 1


def test_sensitive_outputs_have_no_value_in_the_log() -> None:
    outputs = {
        "open": {"sensitive": False, "type": "string", "value": "v"},
        "shut": {"sensitive": True, "value": "s"},
    }
    event = OutputReader().read(message("outputs", outputs=outputs))
    assert event.data == {
        "kind": "outputs",
        "outputs": {
            "open": {"sensitive": False, "type": "string", "value": "v"},
            "shut": {"sensitive": True},
        },
    }


@pytest.mark.parametrize(
    "line", ["plain", "\x1b[32mgreen\x1b[0m", "{not json", '{"json": "but not ours"}', "[1]", ""]
)
def test_what_is_not_one_of_terraforms_messages_is_kept_as_it_came(line: str) -> None:
    event = OutputReader().read(line)
    assert (event.message, event.data) == (line, None)


def test_a_message_in_a_shape_of_the_future_still_says_its_text() -> None:
    for odd in ({"type": "apply_start", "hook": "?"}, {"type": "diagnostic", "diagnostic": []}):
        assert OutputReader().read(message(**odd)).message == "text"


def program(folder: Path, name: str, output: str) -> Path:
    script = folder / name
    script.write_text(f"#!/bin/sh\necho '{output}'\n")
    script.chmod(0o755)
    return script


def test_the_terraform_that_was_chosen_comes_first(tmp_path: Path) -> None:
    path = program(tmp_path, "mine", "OpenTofu v1.9.1")
    program(tmp_path, "terraform", "Terraform v1.5.0")
    terraform = find_terraform({"SLIPWAY_TERRAFORM": str(path), "PATH": str(tmp_path)})
    assert (terraform.origin, terraform.flavour, terraform.label) == (
        "SLIPWAY_TERRAFORM",
        "opentofu",
        "1.9.1 (OpenTofu)",
    )


def test_on_the_path_terraform_comes_before_tofu(tmp_path: Path) -> None:
    program(tmp_path, "tofu", "OpenTofu v1.9.1")
    assert find_terraform({"PATH": str(tmp_path)}).flavour == "opentofu"
    program(tmp_path, "terraform", "Terraform v1.5.0")
    terraform = find_terraform({"PATH": str(tmp_path)})
    assert (terraform.version, terraform.origin, terraform.has_json_init) == ("1.5.0", "PATH", False)


@pytest.mark.parametrize("output", ["Some other program v1.2.3", ""])
def test_a_program_that_is_no_terraform_is_refused_with_a_remedy(tmp_path: Path, output: str) -> None:
    impostor = program(tmp_path, "impostor", output)
    with pytest.raises(TerraformMissing, match="set SLIPWAY_TERRAFORM"):
        find_terraform({"SLIPWAY_TERRAFORM": str(impostor)})
