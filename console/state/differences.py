"""The difference between two versions of a state, resource by resource, with everything sensitive masked."""

from typing import Any

from console.state.masking import Secrets
from console.state.resources import Instance, instances, outputs
from runner.protocol import MASK, MASK_CHANGED


def changes(before: dict[str, Any], after: dict[str, Any], secrets: Secrets) -> list[dict[str, Any]]:
    """Every instance that differs, in the shape in which the plan pages show changes."""
    before_by_key = {_key(instance): instance for instance in instances(before, secrets)}
    after_by_key = {_key(instance): instance for instance in instances(after, secrets)}
    differences = [
        _change(before_by_key.get(key), after_by_key.get(key))
        for key in sorted(before_by_key.keys() | after_by_key.keys())
    ]
    return [change for change in differences if change is not None]


def output_changes(before: dict[str, Any], after: dict[str, Any], secrets: Secrets) -> list[dict[str, Any]]:
    """Every output that differs, as one attribute each."""
    raw_old, raw_new = before.get("outputs") or {}, after.get("outputs") or {}
    before_values = {output.name: output.value for output in outputs(before, secrets)}
    after_values = {output.name: output.value for output in outputs(after, secrets)}
    return [
        _attribute(name, before_values.get(name), after_values.get(name))
        for name in sorted(before_values.keys() | after_values.keys())
        if (raw_old.get(name) or {}).get("value") != (raw_new.get(name) or {}).get("value")
    ]


def _key(instance: Instance) -> tuple[str, str]:
    # A deposed object stands beside the one that replaces it, under the same address.
    return instance.address, instance.status if instance.status.startswith("deposed") else ""


def _change(before: Instance | None, after: Instance | None) -> dict[str, Any] | None:
    attributes = _attributes(before, after)
    if before and after and not attributes and before.status == after.status:
        return None
    instance = after or before
    if instance is None:
        return None
    return {
        "address": instance.address,
        "module": instance.module,
        "action": "create" if before is None else "delete" if after is None else "update",
        "status": f"{before.status or 'sound'} → {after.status or 'sound'}"
        if before and after and before.status != after.status
        else "",
        "attributes": attributes,
    }


def _attributes(before: Instance | None, after: Instance | None) -> list[dict[str, Any]]:
    raw_old, raw_new = before.raw if before else {}, after.raw if after else {}
    shown_old, shown_new = before.attributes() if before else {}, after.attributes() if after else {}
    differing = (
        name for name in sorted(raw_old.keys() | raw_new.keys()) if raw_old.get(name) != raw_new.get(name)
    )
    return [_attribute(name, shown_old.get(name), shown_new.get(name)) for name in differing]


def _attribute(name: str, before: Any, after: Any) -> dict[str, Any]:
    if before == after and before is not None:
        before = after = MASK  # what differs is inside, and masked
    if before is not None and after == MASK:
        after = MASK_CHANGED
    return {
        "name": name,
        "before": before,
        "after": after,
        "before_sensitive": before == MASK,
        "after_sensitive": after in (MASK, MASK_CHANGED),
        "after_unknown": False,
        "forces_replacement": False,
    }
