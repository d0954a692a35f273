"""What a retry may go on with by itself: the part of a reviewed plan that is left, and nothing else.

The saved plan no longer fits the state, so Terraform plans again. Whoever reviewed the first plan said yes to
certain actions at certain addresses; what the new plan finds beyond those has to be reviewed like any plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from runner.protocol import ReviewedChange

#: What may be left of each reviewed action. A replacement may have lost its old object and lack its new one,
#: or have both; a creation that ended half-way is tainted, and then a destroy is left that nobody has seen.
_MAY_BE_LEFT = {
    "create": {"create"},
    "update": {"update"},
    "delete": {"delete", "delete deposed"},
    "delete deposed": {"delete deposed"},
    "replace": {"replace", "create", "delete deposed"},
    "forget": {"forget"},
    "import": {"import"},
    "move": {"move"},
}

_ACTIONS = {
    ("create",): "create",
    ("update",): "update",
    ("delete",): "delete",
    ("delete", "create"): "replace",
    ("create", "delete"): "replace",
    ("create", "forget"): "replace",
    ("forget",): "forget",
    ("no-op",): "",
    ("read",): "",
}


def beyond_review(document: dict[str, Any], reviewed: Iterable[ReviewedChange]) -> list[str]:
    """What a new plan would do that was not reviewed, as `action address`; empty: it may go on."""
    allowed: dict[str, set[str]] = {}
    for change in reviewed:
        known = _MAY_BE_LEFT.get(_word(change.action, deposed=change.deposed), set())
        allowed.setdefault(change.address, set()).update(known)
    left = [one for one in _left(document) if one[0] not in allowed.get(one[1], ())]
    return [f"{action} {address}" for action, address in left]


def _left(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for resource in document.get("resource_changes", ()):
        if resource.get("mode", "managed") == "managed" and (action := _action(resource)):
            yield action, resource["address"]
    # Of these a review says nothing yet, so they are never a part of one.
    for deferred in document.get("deferred_changes", ()):
        yield "deferred", deferred.get("resource_change", {}).get("address", "?")
    for invoked in document.get("action_invocations", ()):
        yield "invoke", invoked.get("address", "?")


def _action(resource: dict[str, Any]) -> str:
    change = resource.get("change", {})
    actions = tuple(change.get("actions", ()))
    action = _ACTIONS.get(actions, "-".join(actions))
    if not action and change.get("importing"):
        return "import"
    if not action and resource.get("previous_address"):
        return "move"
    return _word(action, deposed=bool(resource.get("deposed")))


def _word(action: str, *, deposed: bool) -> str:
    return "delete deposed" if action == "delete" and deposed else action
