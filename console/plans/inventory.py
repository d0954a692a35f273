"""The inventory of a Spec: what a destroy would destroy, by address only. Values are never read out."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from console.plans.documents import plan_document
from console.plans.models import Plan
from console.state.backends import backend_of
from console.state.services import read_state
from specs.models import Spec


@dataclass(frozen=True, slots=True)
class Inventory:
    """The managed resources of a spec, and from where they are known."""

    addresses: list[str]
    #: The kind of the backend that has the state, where that is not this console.
    kept_in: str = ""
    #: The plan of the last deploy, where that is all that is known.
    as_of: Plan | None = None


def inventory_of(spec: Spec) -> Inventory:
    """List what is in the state; for a remote backend, what the last deploy was to leave."""
    backend = backend_of(spec)
    if backend is None:
        return Inventory(addresses_in_state(spec))
    deployed = last_deployed_plan(spec)
    if deployed is None:
        return Inventory([], kept_in=backend.kind)
    return Inventory(sorted(addresses_after(deployed)), kept_in=backend.kind, as_of=deployed)


def may_have_resources(spec: Spec) -> bool:
    """Tell whether there may be something to destroy."""
    inventory = inventory_of(spec)
    if inventory.addresses or not inventory.kept_in:
        return bool(inventory.addresses)
    return spec.deployed_at is not None and not _was_destroyed_since(spec, spec.deployed_at)


def last_deployed_plan(spec: Spec) -> Plan | None:
    """The plan that the spec's last deploy applied, unless the spec was destroyed since."""
    spent = Plan.objects.select_related("spent_by").filter(spec=spec, destroy=False, spent_by__isnull=False)
    plan = spent.order_by("-spent_at").first()
    return None if plan is None or _was_destroyed_since(spec, plan.spent_at) else plan


def addresses_after(plan: Plan) -> Iterator[str]:
    """The managed resources that there are when the plan has been applied."""
    planned = plan_document(plan).get("planned_values") or {}
    yield from _in_module(planned.get("root_module") or {})


def addresses_in_state(spec: Spec) -> list[str]:
    """The managed resources of the newest state version, in order of their addresses."""
    body = read_state(spec=spec)
    state = orjson.loads(body) if body else {}
    return sorted(
        address
        for resource in state.get("resources") or []
        if resource.get("mode") == "managed"
        for address in _instances(resource)
    )


def _was_destroyed_since(spec: Spec, moment: Any) -> bool:
    return spec.destroyed_at is not None and spec.destroyed_at > moment


def _in_module(module: dict[str, Any]) -> Iterator[str]:
    for resource in module.get("resources") or []:
        if resource.get("mode") == "managed":
            yield str(resource["address"])
    for child in module.get("child_modules") or []:
        yield from _in_module(child)


def _instances(resource: dict[str, Any]) -> Iterator[str]:
    module = f"{resource['module']}." if resource.get("module") else ""
    for instance in resource.get("instances") or []:
        key = instance.get("index_key")
        index = "" if key is None else f"[{json.dumps(key, ensure_ascii=False)}]"
        deposed = f" (deposed {instance['deposed']})" if instance.get("deposed") else ""
        yield f"{module}{resource['type']}.{resource['name']}{index}{deposed}"
