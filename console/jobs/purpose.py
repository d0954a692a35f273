"""What a PLAN is for, where it is not for applying the Spec as it is. The job's own snapshot says it:

    {…, "destroy": true}                       # a destroy, to be reviewed and then applied as one
    {…, "speculative": {"revision": 3}}        # a look at some revision; nobody can apply it
    {…, "refresh_only": true}                  # a look at what an interrupted apply left; nobody can apply it

It is a part of the snapshot's hash, so that a plan made for one purpose never passes for another.
"""

from typing import Any

KEYS = ("destroy", "speculative", "refresh_only")


def to_destroy(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {**snapshot, "destroy": True}


def to_look_at(snapshot: dict[str, Any], *, revision: int) -> dict[str, Any]:
    return {**snapshot, "speculative": {"revision": revision}}


def to_refresh(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {**without_purpose(snapshot), "refresh_only": True}


def without_purpose(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in snapshot.items() if key not in KEYS}


def purpose_of(snapshot: dict[str, Any]) -> dict[str, Any]:
    """What the snapshot says of it; empty for a plan of the Spec as it is."""
    return {key: snapshot[key] for key in KEYS if key in snapshot}


def is_destroy(snapshot: dict[str, Any]) -> bool:
    return snapshot.get("destroy") is True


def is_speculative(snapshot: dict[str, Any]) -> bool:
    return bool(snapshot.get("speculative")) or is_refresh_only(snapshot)


def is_refresh_only(snapshot: dict[str, Any]) -> bool:
    return snapshot.get("refresh_only") is True


def revision_looked_at(snapshot: dict[str, Any]) -> int | None:
    speculative = snapshot.get("speculative")
    return speculative.get("revision") if isinstance(speculative, dict) else None
