"""Hiding values that are known to be secret, also where nothing marks them. No database."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from console import json_walk as leaves
from runner.protocol import MASK

#: A copy of "on" or "admin" says nothing; one of a longer secret does.
MIN_COPIED_CHARS = 6


@dataclass(frozen=True, slots=True)
class Secrets:
    """Texts that no page shows: copies of the first, and whatever has one of the second inside."""

    copies: frozenset[str] = frozenset()
    parts: tuple[str, ...] = ()

    @classmethod
    def of(cls, *, marked: Iterable[Any], values: Iterable[Any]) -> "Secrets":
        """`marked` is what a state calls sensitive; `values` are the Spec's own sensitive values."""
        given_texts = {text for value in values for text in texts(value) if text}
        copies = {text for value in marked for text in texts(value) if len(text) >= MIN_COPIED_CHARS}
        return cls(
            copies=frozenset(copies | given_texts),
            parts=tuple(sorted(text for text in given_texts if len(text) >= MIN_COPIED_CHARS)),
        )

    def hide(self, value: Any) -> Any:
        return leaves.with_leaves(value, lambda leaf: MASK if self._is_secret(leaf) else leaf)

    def _is_secret(self, value: Any) -> bool:
        if value is None or isinstance(value, bool):
            return False
        text = str(value)
        return text in self.copies or any(part in text for part in self.parts)


NO_SECRETS = Secrets()


def texts(value: Any) -> Iterator[str]:
    """Yield the leaves of a value. Beside a typed value, Terraform's type is not one."""
    return leaves.texts(value, parts=_parts)


def _parts(value: dict[str, Any]) -> Iterable[Any]:
    return [value["value"]] if value.keys() == {"value", "type"} else value.values()
