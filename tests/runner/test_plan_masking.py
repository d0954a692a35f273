"""Masking and counting of `terraform show -json`."""

from __future__ import annotations

import json
from typing import Any

from runner.protocol import MASK
from runner.terraform.plan_actions import summarize
from runner.terraform.plan_masking import mask, sensitive_values


def change(*actions: str, mode: str = "managed", **more: Any) -> dict[str, Any]:
    previous = more.pop("previous_address", None)
    resource: dict[str, Any] = {"mode": mode, "change": {"actions": list(actions), **more}}
    return resource | ({"previous_address": previous} if previous else {})


def test_each_change_is_counted_by_its_kind() -> None:
    document = {
        "resource_changes": [
            change("create"),
            change("update"),
            change("update", previous_address="old"),
            change("delete"),
            change("delete", "create"),
            change("create", "delete"),
            change("no-op", importing={"id": "i-1"}),
            change("read", mode="data"),
            change("no-op"),
        ]
    }
    assert summarize(document) == {
        "add": 1, "change": 2, "replace": 2, "destroy": 1, "import": 1, "move": 1,
    }  # fmt: skip


def test_marked_values_are_masked_wherever_the_document_repeats_them() -> None:
    document: dict[str, Any] = {
        "variables": {
            "password": {"value": "s3cret"}, "region": {"value": "eu"}, "named": {"value": "s3cret"},
        },
        "planned_values": {
            "outputs": {
                "out": {"sensitive": True, "value": "s3cret"}, "plain": {"sensitive": False, "value": 1},
            },
            "root_module": {
                "resources": [{"values": {"a": "s3cret", "b": 1}, "sensitive_values": {"a": True}}],
                "child_modules": [
                    {"resources": [{"values": {"c": ["s3cret", "x"]}, "sensitive_values": {"c": [True]}}]}
                ],
            },
        },
        "resource_changes": [
            change(
                "update",
                before={"a": "s3cret", "n": None},
                after={"a": {"deep": "s3cret", "open": "y"}},
                before_sensitive={"a": True, "n": True},
                after_sensitive={"a": {"deep": True}},
            )
        ],
        "resource_drift": [change("update", before="s3cret", before_sensitive=True)],
        "deferred_changes": [{"resource_change": change("create", after="s3cret", after_sensitive=True)}],
        "output_changes": {"out": {"before": "s3cret", "before_sensitive": True, "after": "s3cret",
                                   "after_sensitive": True}},
        "prior_state": {"values": {"outputs": {"out": {"sensitive": True, "value": "s3cret"}}}},
        "configuration": {
            "root_module": {
                "variables": {"password": {"sensitive": True, "default": "s3cret"}, "region": {}},
                "module_calls": {
                    "db": {
                        "expressions": {"password": {"constant_value": "s3cret"}},
                        "module": {"variables": {"password": {"sensitive": True, "default": "s3cret"}}},
                    }
                },
            }
        },
    }  # fmt: skip
    assert set(sensitive_values(document)) == {"s3cret"}
    mask(document, sensitive_variables=["named"])
    assert "s3cret" not in json.dumps(document)
    assert document["variables"]["region"] == {"value": "eu"}
    assert document["resource_changes"][0]["change"] == {
        "actions": ["update"],
        "before": {"a": MASK, "n": None},
        "after": {"a": {"deep": MASK, "open": "y"}},
        "before_sensitive": {"a": True, "n": True},
        "after_sensitive": {"a": {"deep": True}},
    }


def test_an_empty_document_is_no_error() -> None:
    document: dict[str, Any] = {}
    mask(document)
    assert not list(sensitive_values(document))
    assert set(summarize(document).values()) == {0}
