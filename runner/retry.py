"""What a retry may go on with by itself: the part of a reviewed plan that is left, and nothing else.

The saved plan no longer fits the state, so Terraform plans again. Whoever reviewed the first plan said yes to
certain actions at certain addresses; what the new plan finds beyond those has to be reviewed like any plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from runner.protocol import ReviewedChange
from runner.terraform.plan_actions import is_managed, resource_action

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


def beyond_review(document: dict[str, Any], reviewed: Iterable[ReviewedChange]) -> list[str]:
    """List the changes of a new plan that were not reviewed, as `action address`; empty: it may go on."""
    allowed: dict[str, set[str]] = {}
    for change in reviewed:
        remainders = _MAY_BE_LEFT.get(_with_deposed(change.action, deposed=change.deposed), set())
        allowed.setdefault(change.address, set()).update(remainders)
    return [
        f"{action} {address}"
        for action, address in _planned_actions(document)
        if action not in allowed.get(address, ())
    ]


def _planned_actions(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for resource in document.get("resource_changes", ()):
        if is_managed(resource) and (action := _reviewable_action(resource)):
            yield action, resource["address"]
    # A review lists neither of these, so they always need a review of their own.
    for deferred in document.get("deferred_changes", ()):
        yield "deferred", deferred.get("resource_change", {}).get("address", "?")
    for invocation in document.get("action_invocations", ()):
        yield "invoke", invocation.get("address", "?")


def _reviewable_action(resource: dict[str, Any]) -> str:
    action = resource_action(resource)
    if not action and resource.get("change", {}).get("importing"):
        return "import"
    if not action and resource.get("previous_address"):
        return "move"
    return _with_deposed(action, deposed=bool(resource.get("deposed")))


def _with_deposed(action: str, *, deposed: bool) -> str:
    return "delete deposed" if action == "delete" and deposed else action
