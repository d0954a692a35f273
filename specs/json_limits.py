"""Limits of JSON values beyond JSON's own: characters, numbers and depths that cannot be stored."""

from collections.abc import Collection
from typing import Any

from console.errors import BadInput

#: Deeper than any configuration is; what reads and writes JSON ends at about a thousand.
MAX_DEPTH = 100
#: A claim carries whole numbers of 64 bits; a longer one would come out rounded, or not at all.
LEAST, MOST = -(2**63), 2**64 - 1


def check_storable(value: Any, *, field: str, depth: int = 0, any_number: bool = False) -> None:
    """Refuse the first part that cannot be stored. `any_number` allows numbers that no runner receives."""
    if depth > MAX_DEPTH:
        raise BadInput(f"{field}: is nested more than {MAX_DEPTH} levels deep.", field=field)
    if isinstance(value, str) and not _is_text(value):
        raise BadInput(f"{field}: has characters that are not text, such as NUL. Remove them.", field=field)
    if isinstance(value, float) and value - value != 0:
        raise BadInput(f"{field}: {value} is not a number.", field=field)
    if isinstance(value, int) and not any_number and not LEAST <= value <= MOST:
        raise BadInput(f"{field}: the number has more than 64 bits. Give it as text, in quotes.", field=field)
    if isinstance(value, dict):
        for key, item in value.items():
            check_storable(key, field=field, depth=depth)
            check_storable(item, field=f"{field}.{key}", depth=depth + 1, any_number=any_number)
    if isinstance(value, list):
        for index, item in enumerate(value):
            check_storable(item, field=f"{field}[{index}]", depth=depth + 1, any_number=any_number)


def is_too_deep(value: Any) -> bool:
    """Return true below MAX_DEPTH levels. Walks level by level, so that no depth ends this function."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for container in level for item in _children(container)]
        if not level:
            return False
    return True


def _children(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _is_text(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)
