"""Walk the leaves of a JSON value: read them as texts, or replace them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def texts(
    value: Any, *, parts: Callable[[dict[str, Any]], Iterable[Any]] = lambda value: value.values()
) -> Iterator[str]:
    """Yield each leaf that could be a secret, as text. `parts` selects the members of an object to walk."""
    if isinstance(value, dict):
        value = list(parts(value))
    if isinstance(value, list):
        for item in value:
            yield from texts(item, parts=parts)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def with_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy with each leaf replaced by `change(leaf)`. Keys do not change."""
    if isinstance(value, dict):
        return {key: with_leaves(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [with_leaves(item, change) for item in value]
    return change(value)
