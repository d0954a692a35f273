"""The changes that a retry may apply without another review: the remainder of a reviewed plan.

The saved plan no longer fits the state, so Terraform plans again. The review of the first plan approved
certain actions at certain addresses; any others in the new plan have to be reviewed like any plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from runner.protocol import ReviewedChange
from runner.terraform.plan_actions import is_managed, resource_action

#: The actions that may remain of each reviewed one. A replacement may have lost its old object and lack its
#: new one, or have both; a creation that ended half-way is tainted, and its deletion was not reviewed.
_REMAINDERS = {
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
    """List the changes of a new plan that were not reviewed, as `action address`."""
    allowed: dict[str, set[str]] = {}
    for change in reviewed:
        remainders = _REMAINDERS.get(_with_deposed(change.action, deposed=change.deposed), set())
        allowed.setdefault(change.address, set()).update(remainders)
    return [
        f"{action} {address}"
        for action, address in _list_actions(document)
        if action not in allowed.get(address, ())
    ]


def _list_actions(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
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
