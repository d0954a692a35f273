"""Hiding values that are known to be secret, also where nothing marks them. No database."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

MASK = "(sensitive)"

#: A copy of "on" or "admin" says nothing; one of a longer secret does.
MIN_COPIED_CHARS = 6


@dataclass(frozen=True, slots=True)
class Secrets:
    """Texts that no page shows: copies of the first, and whatever has one of the second inside."""

    copies: frozenset[str] = frozenset()
    parts: tuple[str, ...] = ()

    @classmethod
    def of(cls, *, marked: Iterable[Any], given: Iterable[Any]) -> "Secrets":
        """`marked` is what a state calls sensitive; `given` are the Spec's own sensitive values."""
        given_texts = {text for value in given for text in texts(value) if text}
        copies = {text for value in marked for text in texts(value) if len(text) >= MIN_COPIED_CHARS}
        return cls(
            copies=frozenset(copies | given_texts),
            parts=tuple(sorted(text for text in given_texts if len(text) >= MIN_COPIED_CHARS)),
        )

    def hide(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.hide(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.hide(item) for item in value]
        return MASK if self._is_secret(value) else value

    def _is_secret(self, value: Any) -> bool:
        if value is None or isinstance(value, bool):
            return False
        text = str(value)
        return text in self.copies or any(part in text for part in self.parts)


NO_SECRETS = Secrets()


def texts(value: Any) -> Iterator[str]:
    """The leaves of a value. Of a value that Terraform keeps with its type, the type is none."""
    if isinstance(value, dict):
        leaves = [value["value"]] if value.keys() == {"value", "type"} else value.values()
        for item in leaves:
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
