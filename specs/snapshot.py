"""The canonical form of a configuration, and its hash: the same content always gives the same hash."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from console.json_walk import with_leaves

if TYPE_CHECKING:
    from specs.models import Revision, Spec


def canonical(document: dict[str, Any]) -> bytes:
    """One spelling only: sorted keys, no spaces, UTF-8, no NaN, whole numbers without a fraction."""
    return json.dumps(
        with_leaves(document, _normal),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    ).encode()


def snapshot_hash(document: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(document)).hexdigest()


def snapshot_of(spec: Spec, revision: Revision | None = None) -> dict[str, Any]:
    """Everything that decides the outcome of a job: a revision, and the variables as they are now."""
    from specs.declared import declared_by
    from specs.selectors import current_revision
    from specs.variables import resolved

    chosen = revision or current_revision(spec)
    document = dict(chosen.document)
    document.update(resolved(spec, document, declared=declared_by(document)))
    document["terraform_version"] = spec.terraform_version or None
    document["region"] = spec.region or None
    return document


def _normal(value: Any) -> Any:
    """1.0 and 1 are one number to JSON's readers, and a jsonb column gives back the one it likes better.

    By the decimal that is written: 1e23 is not the whole number that is nearest to it in binary.
    """
    return int(Decimal(repr(value))) if isinstance(value, float) and value.is_integer() else value
