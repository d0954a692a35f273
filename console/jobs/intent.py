"""The intent of a PLAN, where it is not to apply the Spec as it is. The job's own snapshot says it:

    {…, "destroy": true}                       # a destroy, to be reviewed and then applied as one
    {…, "speculative": {"revision": 3}}        # a preview of some revision; not to apply
    {…, "refresh_only": true}                  # a check of what an interrupted apply left; not to apply

It is a part of the snapshot's hash, so that a plan made with one intent never passes for another.
"""

from typing import Any

KEYS = ("destroy", "speculative", "refresh_only")


def intent_to(*, destroy: bool = False, preview_revision: int | None = None) -> dict[str, Any]:
    """Return the keys that say what a plan is for; none for a plan of the Spec as it is."""
    if preview_revision is not None:
        return {"speculative": {"revision": preview_revision}}
    return {"destroy": True} if destroy else {}


def as_destroy(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {**snapshot, "destroy": True}


def as_refresh_only(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {**without_intent(snapshot), "refresh_only": True}


def without_intent(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in snapshot.items() if key not in KEYS}


def intent_of(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return the snapshot's keys that say it; none for a plan of the Spec as it is."""
    return {key: snapshot[key] for key in KEYS if key in snapshot}


def is_destroy(snapshot: dict[str, Any]) -> bool:
    return snapshot.get("destroy") is True


def is_speculative(snapshot: dict[str, Any]) -> bool:
    return bool(snapshot.get("speculative")) or is_refresh_only(snapshot)


def is_refresh_only(snapshot: dict[str, Any]) -> bool:
    return snapshot.get("refresh_only") is True


def speculative_revision(snapshot: dict[str, Any]) -> int | None:
    """Return the number of the revision that a speculative plan previews."""
    speculative = snapshot.get("speculative")
    return speculative.get("revision") if isinstance(speculative, dict) else None
