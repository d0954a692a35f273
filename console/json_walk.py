"""The leaves of a JSON value: reading them as texts, and putting others in their places. No database."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def texts(
    value: Any, *, parts: Callable[[dict[str, Any]], Iterable[Any]] = lambda value: value.values()
) -> Iterator[str]:
    """Each leaf that could be a secret, as text; `parts` says what of an object is looked at."""
    if isinstance(value, dict):
        value = list(parts(value))
    if isinstance(value, list):
        for one in value:
            yield from texts(one, parts=parts)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def with_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same value with each leaf as `change` makes it. Keys stay."""
    if isinstance(value, dict):
        return {key: with_leaves(one, change) for key, one in value.items()}
    if isinstance(value, list):
        return [with_leaves(one, change) for one in value]
    return change(value)
