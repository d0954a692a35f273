"""The difference between two versions of a state, resource by resource, with everything sensitive masked."""

from typing import Any

from console.state.masking import Secrets
from console.state.resources import Instance, instances, outputs
from runner.protocol import MASK, MASK_CHANGED


def changes(before: dict[str, Any], after: dict[str, Any], secrets: Secrets) -> list[dict[str, Any]]:
    """Every instance that differs, in the shape in which the plan pages show changes."""
    old = {_key(one): one for one in instances(before, secrets)}
    new = {_key(one): one for one in instances(after, secrets)}
    found = [_change(old.get(key), new.get(key)) for key in sorted(old.keys() | new.keys())]
    return [change for change in found if change is not None]


def output_changes(before: dict[str, Any], after: dict[str, Any], secrets: Secrets) -> list[dict[str, Any]]:
    """Every output that differs, as one attribute each."""
    raw_old, raw_new = before.get("outputs") or {}, after.get("outputs") or {}
    old = {output.name: output.value for output in outputs(before, secrets)}
    new = {output.name: output.value for output in outputs(after, secrets)}
    return [
        _attribute(name, old.get(name), new.get(name))
        for name in sorted(old.keys() | new.keys())
        if (raw_old.get(name) or {}).get("value") != (raw_new.get(name) or {}).get("value")
    ]


def _key(instance: Instance) -> tuple[str, str]:
    # A deposed object stands beside the one that replaces it, under the same address.
    return instance.address, instance.status if instance.status.startswith("deposed") else ""


def _change(old: Instance | None, new: Instance | None) -> dict[str, Any] | None:
    attributes = _attributes(old, new)
    if old and new and not attributes and old.status == new.status:
        return None
    known = new or old
    if known is None:
        return None
    return {
        "address": known.address,
        "module": known.module,
        "action": "create" if old is None else "delete" if new is None else "update",
        "status": f"{old.status or 'sound'} → {new.status or 'sound'}"
        if old and new and old.status != new.status
        else "",
        "attributes": attributes,
    }


def _attributes(old: Instance | None, new: Instance | None) -> list[dict[str, Any]]:
    raw_old, raw_new = old.raw if old else {}, new.raw if new else {}
    shown_old, shown_new = old.attributes() if old else {}, new.attributes() if new else {}
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
