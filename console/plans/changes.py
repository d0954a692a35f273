"""Reading `terraform show -json` of a plan: what changes, how and why, with secrets masked."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from runner.protocol import MASK, MASK_CHANGED

UNKNOWN = "(known after apply)"

#: Terraform's action lists, as one word each.
ACTIONS = {
    ("no-op",): "noop",
    ("create",): "create",
    ("read",): "read",
    ("update",): "update",
    ("delete",): "delete",
    ("delete", "create"): "replace",
    ("create", "delete"): "replace",
    ("create", "forget"): "replace",
    ("forget",): "forget",
}

#: In which order a replacement happens: the difference between a gap and none.
ORDERS = {
    ("delete", "create"): "the old one goes first",
    ("create", "delete"): "the new one comes first",
    ("create", "forget"): "the old one is forgotten and stays",
}

#: Terraform's reasons, where its list of attributes does not tell them already.
REASONS = {
    "replace_because_tainted": "it is tainted: its creation did not finish",
    "replace_by_request": "a replacement was requested",
    "replace_by_triggers": "something that it is triggered by changes",
    "delete_because_no_resource_config": "it is no longer in the configuration",
    "delete_because_wrong_repetition": "its count or for_each came or went",
    "delete_because_count_index": "its index is beyond count",
    "delete_because_each_key": "its key is no longer in for_each",
    "delete_because_no_module": "its module is no longer in the configuration",
    "delete_because_no_move_target": "what it was moved to is not in the configuration",
}

#: Which number of the summary an action counts in.
COUNTED = {"create": "add", "update": "change", "replace": "replace", "delete": "destroy"}

#: The order of review: what cannot be undone first.
REVIEW_ORDER = ("delete", "replace", "forget", "update", "create", "import", "move", "read")

SUMMARY_KEYS = ("add", "change", "replace", "destroy", "import", "move")


def summarize(plan: dict[str, Any]) -> dict[str, int]:
    summary = dict.fromkeys(SUMMARY_KEYS, 0)
    for resource in _managed_resources(plan, "resource_changes"):
        counted = COUNTED.get(_action(resource["change"]))
        if counted:
            summary[counted] += 1
        summary["import"] += bool(resource["change"].get("importing"))
        summary["move"] += bool(resource.get("previous_address"))
    return summary


def resource_changes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Every resource that changes, with its attributes before and after."""
    described = [_describe(resource) for resource in _managed_resources(plan, "resource_changes")]
    return [change for change in described if change["action"] != "noop"]


def in_order_of_review(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The risky ones first, each action by module and address."""

    def place(change: dict[str, Any]) -> tuple[int, str, str]:
        return REVIEW_ORDER.index(change["action"]), change["module"], change["address"]

    return sorted(changes, key=place)


def drift(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """List what changed outside of Terraform since the last apply, as far as Terraform finds it relevant."""
    described = [_describe(resource) for resource in _managed_resources(plan, "resource_drift")]
    return [change for change in described if change["action"] in ("update", "delete")]


def output_changes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs that will have another value, in the form of attributes."""
    changes = [
        {"action": _action(change), **_attribute(name, _whole(change), forcing=set())}
        for name, change in sorted(plan.get("output_changes", {}).items())
    ]
    return [change for change in changes if change["action"] != "noop"]


def count_in_state(plan: dict[str, Any]) -> int:
    """Count the resources in the state before the plan is applied."""
    resources = [
        resource
        for resource in _managed_resources(plan, "resource_changes")
        if not resource.get("deposed") and not resource["change"].get("importing")
    ]
    return sum(_action(resource["change"]) != "create" for resource in resources)


def _managed_resources(plan: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [resource for resource in plan.get(key, []) if resource.get("mode") == "managed"]


def _action(change: dict[str, Any]) -> str:
    return ACTIONS.get(tuple(change["actions"]), "update")


def _describe(resource: dict[str, Any]) -> dict[str, Any]:
    change, action = resource["change"], _action(resource["change"])
    importing, previous = change.get("importing"), resource.get("previous_address") or ""
    if action == "noop" and importing:
        action = "import"
    elif action == "noop" and previous:
        action = "move"
    paths = [path for path in change.get("replace_paths", []) if path]
    return {
        "address": resource["address"],
        "module": resource.get("module_address", ""),
        "type": resource["type"],
        "name": resource["name"],
        "action": action,
        "deposed": resource.get("deposed", ""),
        "previous_address": previous,
        "import_id": str((importing or {}).get("id", "")),
        "order": ORDERS.get(tuple(change["actions"]), ""),
        "reason": REASONS.get(resource.get("action_reason", ""), ""),
        "replace_paths": sorted({_path_text(path) for path in paths}),
        "attributes": list(_attributes(change, {str(path[0]) for path in paths})),
    }


def _attributes(change: dict[str, Any], forcing: set[str]) -> Iterator[dict[str, Any]]:
    sides = {key: change.get(key) for key in ("before", "after", "after_unknown")}
    names = {name for side in ("before", "after") for name in _object(sides[side])}
    names |= {name for name, mark in _object(sides["after_unknown"]).items() if _marks_anything(mark)}
    for name in sorted(names):
        attribute = _attribute(name, _part(change, name), forcing=forcing)
        if attribute["before"] != attribute["after"] or attribute["after_unknown"]:
            yield attribute


def _attribute(name: str, part: dict[str, Any], *, forcing: set[str]) -> dict[str, Any]:
    before = masked(part["before"], part["before_sensitive"])
    after = masked(part["after"], part["after_sensitive"], part["before"])
    return {
        "name": name,
        "before": before,
        "after": with_unknowns(after, part["after_unknown"]),
        "before_sensitive": bool(part["before_sensitive"]),
        "after_sensitive": bool(part["after_sensitive"]),
        "after_unknown": part["after_unknown"] is True,
        "forces_replacement": name in forcing,
    }


#: What a change says of both sides of a value; each has the value's own shape.
SIDES = ("before", "after", "before_sensitive", "after_sensitive", "after_unknown")


def _part(change: dict[str, Any], name: str) -> dict[str, Any]:
    """One attribute's part of each side. A mark on the whole is a mark on each part."""
    return {side: True if change.get(side) is True else _object(change.get(side)).get(name) for side in SIDES}


def _whole(change: dict[str, Any]) -> dict[str, Any]:
    return {side: change.get(side) for side in SIDES}


def masked(value: Any, mark: Any, before: Any = None) -> Any:
    """The value with everything that Terraform marks as sensitive replaced.

    `before` is the earlier value. A runner masks already, and then only its mask says whether it changed.
    """
    if mark is True:
        return _mask(value, before)
    if isinstance(mark, dict) and isinstance(value, dict):
        befores = _object(before)
        return {key: masked(item, mark.get(key), befores.get(key)) for key, item in value.items()}
    if isinstance(mark, list) and isinstance(value, list):
        earlier = before if isinstance(before, list) else []
        parts = zip_longest(value, mark[: len(value)], earlier[: len(value)])
        return [masked(item, part_mark, item_before) for item, part_mark, item_before in parts]
    return value


def _mask(value: Any, before: Any) -> Any:
    if value is None or value in (MASK, MASK_CHANGED):
        return value
    return MASK_CHANGED if before is not None and before != value else MASK


def with_unknowns(value: Any, unknown: Any) -> Any:
    """The value with a word in each place that is known only after the apply; Terraform leaves those out."""
    if unknown is True:
        return UNKNOWN
    if isinstance(unknown, dict) and _marks_anything(unknown):
        items = _object(value)
        keys = [*items, *(key for key in unknown if key not in items and _marks_anything(unknown[key]))]
        return {key: with_unknowns(items.get(key), unknown.get(key)) for key in keys}
    if isinstance(unknown, list) and _marks_anything(unknown):
        elements = value if isinstance(value, list) else []
        return [with_unknowns(item, mark) for item, mark in zip_longest(elements, unknown)]
    return value


def _marks_anything(mark: Any) -> bool:
    """Tell whether anything is marked: `{}` and `[{}]` mark nothing."""
    if isinstance(mark, dict):
        return any(_marks_anything(part) for part in mark.values())
    if isinstance(mark, list):
        return any(_marks_anything(part) for part in mark)
    return mark is True


def _path_text(path: list[Any]) -> str:
    """`network[0].subnet`, as it is written in a configuration."""
    first, *rest = path
    return str(first) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
