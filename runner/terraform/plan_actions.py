"""The actions of a plan document, as `terraform show -json` prints it, and how many there are of each."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

#: Terraform's action lists, as one word each; empty for what changes nothing.
ACTIONS = {
    ("no-op",): "",
    ("read",): "",
    ("create",): "create",
    ("update",): "update",
    ("delete",): "delete",
    ("delete", "create"): "replace",
    ("create", "delete"): "replace",
    ("create", "forget"): "replace",
    ("forget",): "forget",
}

#: The count of the summary that includes an action. A replacement counts once, as a replacement.
_COUNTS = {"create": "add", "update": "change", "replace": "replace", "delete": "destroy"}
_SUMMARY_KEYS = ("add", "change", "replace", "destroy", "import", "move")


def resource_action(resource: Document) -> str:
    """Return the action on a managed resource; a list that Terraform adds later is joined by hyphens."""
    actions = tuple(resource.get("change", {}).get("actions", ()))
    return ACTIONS.get(actions, "-".join(actions)) if is_managed(resource) else ""


def is_managed(resource: Document) -> bool:
    """Return False for a data source."""
    return bool(resource.get("mode", "managed") == "managed")


def summarize(document: Document) -> dict[str, int]:
    """Count the resources of each kind of change."""
    summary = dict.fromkeys(_SUMMARY_KEYS, 0)
    for resource in document.get("resource_changes", ()):
        if count := _COUNTS.get(resource_action(resource)):
            summary[count] += 1
        summary["import"] += bool(resource.get("change", {}).get("importing"))
        summary["move"] += bool(resource.get("previous_address"))
    return summary


def count_drift(document: Document) -> int:
    """Count the resources that others have changed or deleted since the last apply."""
    changes = (resource.get("change", {}) for resource in document.get("resource_drift", ()))
    actions = (ACTIONS.get(tuple(change.get("actions", ()))) for change in changes)
    return sum(action in ("update", "delete") for action in actions)
