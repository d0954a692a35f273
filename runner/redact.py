"""Masks secrets in everything that leaves the runner, in each form in which Terraform may print them."""

from __future__ import annotations

import base64
import json
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "***"

#: Masking "a" or "no" would ruin the log and hide nothing.
_MIN_SECRET_CHARS = 3
#: Terraform prints a provisioner's output line by line, so each line of a secret is a secret. The
#: lines of a JSON key file that are only brackets are not.
_MIN_LINE_CHARS = 4
#: Below this, the part of a base64 text that does not depend on its neighbours is too short to mask.
_MIN_INNER_BASE64_BYTES = 8


class Redactor:
    """Knows the secrets of one attempt. More can be added at any time, from any thread."""

    def __init__(self, secrets: Iterable[Any] = ()) -> None:
        self._forms: tuple[str, ...] = ()
        self._adding = threading.Lock()
        self.add(*secrets)

    def add(self, *values: Any) -> None:
        """Mask these values from now on: text, numbers, and all leaves of lists and maps."""
        found = {form for value in values for secret in _leaves(value) for form in _forms(secret)}
        with self._adding:
            # Longest first, so that the usual case of one secret inside another needs one pass.
            self._forms = tuple(sorted(found.union(self._forms), key=lambda form: (-len(form), form)))

    def finds(self, document: str) -> bool:
        """Whether there is a secret in a JSON text, in any of its forms: mostly there is none."""
        return any(form in document for form in self._forms)

    def mask(self, text: str) -> str:
        spans = [span for form in self._forms if form in text for span in _spans(text, form)]
        return _covered(text, spans) if spans else text

    def mask_all(self, value: Any) -> Any:
        """The same JSON value with every text in it masked, keys included."""
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, dict):
            return {self.mask(str(key)): self.mask_all(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.mask_all(one) for one in value]
        # A secret number must not slip through because it is not text.
        if isinstance(value, int | float) and not isinstance(value, bool) and str(value) in self._forms:
            return MASK
        return value


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for one in value.values():
            yield from _leaves(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _leaves(one)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _forms(secret: str) -> Iterator[str]:
    # Terraform composes letters: what was given as "o" and two dots is printed as "ö".
    pieces = {secret, unicodedata.normalize("NFC", secret)}
    for piece in pieces | {piece.strip() for piece in pieces}:
        if len(piece) >= _MIN_SECRET_CHARS:
            yield from _encodings(piece)
    lines = [line.strip() for piece in sorted(pieces) for line in piece.splitlines()]
    if len(lines) > 1:
        for line in lines:
            if len(line) >= _MIN_LINE_CHARS:
                yield from _encodings(line)


def _encodings(secret: str) -> Iterator[str]:
    yield secret
    yield quote(secret, safe="")
    yield quote(secret)
    yield quote_plus(secret)
    yield from _json_encodings(secret)
    yield from _base64_encodings(secret.encode("utf-8", "replace"))


def _json_encodings(secret: str) -> Iterator[str]:
    for ascii_only in (True, False):
        escaped = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        yield json.dumps(escaped)[1:-1]  # JSON in a JSON text, as in a provider's error.
        # Go writes these three as escapes, so that JSON can stand in HTML.
        yield escaped.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _base64_encodings(secret: bytes) -> Iterator[str]:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(secret).decode()
        yield whole
        if len(secret) >= _MIN_INNER_BASE64_BYTES:
            yield whole.rstrip("=")
            for offset in range(3):
                yield _inner_base64(encode(b"\0" * offset + secret).decode(), offset)


def _inner_base64(text: str, offset: int) -> str:
    """The part that is the same whatever stands around the secret, as in base64("user:secret")."""
    start = (0, 2, 3)[offset]  # 8 and 16 foreign bits reach into 2 and 3 characters.
    end = len(text) - 4 if text.endswith("=") else len(text)
    return text[start:end]


def _spans(text: str, form: str) -> Iterator[tuple[int, int]]:
    start = text.find(form)
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + 1)


def _covered(text: str, spans: list[tuple[int, int]]) -> str:
    """Replace the union of the spans, so that two overlapping secrets leave nothing of either."""
    pieces: list[str] = []
    position = 0
    for start, end in sorted(spans):
        if start >= position:
            pieces += (text[position:start], MASK)
        position = max(position, end)
    return "".join([*pieces, text[position:]])
