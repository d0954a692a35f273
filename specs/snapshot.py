"""The canonical form of a configuration, and its hash: the same content always gives the same hash."""

import hashlib
import json
from decimal import Decimal
from typing import Any

from console.json_walk import with_leaves


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


def _normal(value: Any) -> Any:
    """1.0 and 1 are one number to JSON's readers, and a jsonb column gives back the one it likes better.

    By the decimal that is written: 1e23 is not the whole number that is nearest to it in binary.
    """
    return int(Decimal(repr(value))) if isinstance(value, float) and value.is_integer() else value
