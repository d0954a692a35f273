"""What a plan's JSON says, as people read it: with Terraform's own documents, and in its corners."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from console.plans.changes import (
    UNKNOWN,
    count_in_state,
    drift,
    output_changes,
    resource_changes,
    summarize,
)
from runner.protocol import MASK, MASK_CHANGED
from runner.terraform.plan_masking import mask
from tests.console.plans.review import resource
from tests.runner.terraforms import terraform_on_path

BEFORE = """
    variable "password" {
      type      = string
      default   = "first-secret"
      sensitive = true
    }
    resource "terraform_data" "kept" { input = "same" }
    resource "terraform_data" "renamed" { input = "same" }
    resource "terraform_data" "gone" { input = "x" }
    resource "terraform_data" "edited" { input = { size = 1, tags = ["a", "b"] } }
    resource "terraform_data" "secret" { input = { user = "ana", password = var.password } }
    resource "terraform_data" "forced" { triggers_replace = ["one"] }
    resource "terraform_data" "counted" { count = 2 }
    output "size" { value = terraform_data.edited.input.size }
    output "password" {
      value     = var.password
      sensitive = true
    }
"""
AFTER = """
    variable "password" {
      type      = string
      default   = "second-secret"
      sensitive = true
    }
    resource "terraform_data" "kept" { input = "same" }
    resource "terraform_data" "new_name" { input = "same" }
    moved {
      from = terraform_data.renamed
      to   = terraform_data.new_name
    }
    resource "terraform_data" "edited" {
      input = { size = 2, tags = ["a", "c"], id = terraform_data.added.id }
    }
    resource "terraform_data" "secret" { input = { user = "ana", password = var.password } }
    resource "terraform_data" "forced" {
      triggers_replace = ["two"]
      lifecycle { create_before_destroy = true }
    }
    resource "terraform_data" "counted" { count = 1 }
    resource "terraform_data" "added" {}
    import {
      to = terraform_data.imported
      id = "found-1"
    }
    resource "terraform_data" "imported" {}
    output "size" { value = terraform_data.edited.input.size }
    output "password" {
      value     = var.password
      sensitive = true
    }
    output "added" { value = terraform_data.added.id }
"""


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Terraform itself says of going from BEFORE to AFTER, masked as a runner masks it."""
    folder = tmp_path_factory.mktemp("configuration")
    (folder / "main.tf").write_text(BEFORE)
    run(folder, "init", "-input=false")
    run(folder, "apply", "-auto-approve", "-input=false")
    (folder / "main.tf").write_text(AFTER)
    run(folder, "plan", "-input=false", "-out=plan")
    document: dict[str, Any] = json.loads(run(folder, "show", "-json", "plan"))
    mask(document)
    for value in ("first-secret", "second-secret"):
        assert value not in json.dumps(document)
    return document


def run(folder: Path, *arguments: str) -> str:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "CHECKPOINT_DISABLE": "1"}
    command = [terraform_on_path(), *arguments]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=True).stdout


def change(planned: dict[str, Any], name: str) -> dict[str, Any]:
    changes = resource_changes(planned)
    return next(change for change in changes if change["address"].split("[")[0] == f"terraform_data.{name}")


def attribute(changed: dict[str, Any], name: str) -> dict[str, Any]:
    return next(attribute for attribute in changed["attributes"] if attribute["name"] == name)


def test_terraforms_own_counts(planned: dict[str, Any]) -> None:
    assert summarize(planned) == {
        "add": 1, "change": 2, "replace": 1, "destroy": 2, "import": 1, "move": 1,
    }  # fmt: skip
    assert count_in_state(planned) == 8


def test_a_change_in_place_shows_what_is_known_and_says_what_is_not(planned: dict[str, Any]) -> None:
    edited = attribute(change(planned, "edited"), "input")
    assert edited["before"] == {"size": 1, "tags": ["a", "b"]}
    assert edited["after"] == {"size": 2, "tags": ["a", "c"], "id": UNKNOWN}
    assert not edited["after_unknown"]
    assert attribute(change(planned, "edited"), "output")["after_unknown"]


def test_a_sensitive_value_that_changes_says_so_and_no_more(planned: dict[str, Any]) -> None:
    secret = attribute(change(planned, "secret"), "input")
    assert secret["before"] == {"user": "ana", "password": MASK}
    assert secret["after"] == {"user": "ana", "password": MASK_CHANGED}


def test_a_replacement_says_what_forces_it_and_in_which_order(planned: dict[str, Any]) -> None:
    forced = change(planned, "forced")
    assert (forced["action"], forced["replace_paths"]) == ("replace", ["triggers_replace"])
    assert forced["order"] == "the new one comes first"
    assert attribute(forced, "triggers_replace")["forces_replacement"]


def test_moves_imports_and_reasons_are_told(planned: dict[str, Any]) -> None:
    moved, imported = change(planned, "new_name"), change(planned, "imported")
    assert (moved["action"], moved["previous_address"]) == ("move", "terraform_data.renamed")
    assert (imported["action"], imported["import_id"]) == ("import", "found-1")
    assert change(planned, "gone")["reason"] == "it is no longer in the configuration"
    assert change(planned, "counted")["reason"] == "its index is beyond count"


def test_outputs_that_change_are_listed_with_secrets_masked(planned: dict[str, Any]) -> None:
    outputs = {output["name"]: output for output in output_changes(planned)}
    assert outputs.keys() == {"added", "password", "size"}
    assert (outputs["size"]["before"], outputs["size"]["after"]) == (1, 2)
    assert (outputs["password"]["before"], outputs["password"]["after"]) == (MASK, MASK_CHANGED)
    assert outputs["added"]["after_unknown"]


def described(**given: Any) -> dict[str, Any]:
    actions = given.pop("actions", ["update"])
    more = {key: given.pop(key) for key in ("deposed", "action_reason") if key in given}
    return resource_changes({"resource_changes": [resource("t.one", *actions, change=given, **more)]})[0]


def test_what_is_left_of_a_replacement_is_told_from_the_resource_itself() -> None:
    assert described(actions=["delete"], before={"a": 1}, deposed="2f4a")["deposed"] == "2f4a"


def test_a_tainted_resource_says_why_it_is_replaced() -> None:
    tainted = described(actions=["delete", "create"], action_reason="replace_because_tainted")
    assert "its creation did not finish" in tainted["reason"]
    assert tainted["order"] == "the old one goes first"


def test_marks_without_a_mark_in_them_mark_nothing() -> None:
    """Terraform writes `{}` and `[{}]` for blocks in which everything is known."""
    same = {"block": [{"a": 1}], "map": {"b": 2}}
    unknown: dict[str, Any] = {"block": [{}], "map": {}}
    assert described(before=same, after=same, after_unknown=unknown)["attributes"] == []


def test_unknowns_deep_inside_are_shown_in_their_place() -> None:
    changed = described(
        before={"rules": [{"port": 80, "id": "r-1"}]},
        after={"rules": [{"port": 81}, None]},
        after_unknown={"rules": [{"id": True}, True]},
    )
    assert attribute(changed, "rules")["after"] == [{"port": 81, "id": UNKNOWN}, UNKNOWN]


def test_a_runner_that_does_not_mask_is_masked_here() -> None:
    changed = described(
        before={"a": "old-secret", "b": "same-secret", "c": ["x", "old-secret"]},
        after={"a": "new-secret", "b": "same-secret", "c": ["y", "new-secret"]},
        before_sensitive={"a": True, "b": True, "c": [False, True]},
        after_sensitive={"a": True, "b": True, "c": [False, True]},
    )
    assert "secret" not in json.dumps(changed)
    assert [one["name"] for one in changed["attributes"]] == ["a", "c"]
    assert attribute(changed, "a")["after"] == MASK_CHANGED
    assert attribute(changed, "c")["after"] == ["y", MASK_CHANGED]


def test_paths_that_force_a_replacement_are_written_as_in_a_configuration() -> None:
    forced = described(actions=["delete", "create"], replace_paths=[["network", 0, "subnet"], ["zone"]])
    assert forced["replace_paths"] == ["network[0].subnet", "zone"]


def test_what_changed_outside_of_terraform_is_kept_apart() -> None:
    document = {
        "resource_drift": [
            resource("t.edited", "update", change={"before": {"a": 1}, "after": {"a": 2}}),
            resource("t.lost", "delete", change={"before": {"a": 1}}),
            resource("t.moved", "no-op", previous_address="t.old"),
        ]
    }
    assert [(change["address"], change["action"]) for change in drift(document)] == [
        ("t.edited", "update"),
        ("t.lost", "delete"),
    ]
    assert resource_changes(document) == []
