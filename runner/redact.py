"""Masks secrets in everything that leaves the runner, in each form in which Terraform may print them."""

from __future__ import annotations

import base64
import json
import re
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
#: What programs leave as it is in a URL: nothing, what paths have, Go in a path's segment and in a user's
#: password, and JavaScript's `encodeURIComponent`.
_LEFT_IN_URLS = ("", "/", "$&+:=@", "$&+,;=", "!'()*")
_PERCENT = re.compile("%..")
#: Where `base64` and `openssl base64` begin a new line.
_BASE64_LINE_CHARS = (76, 64)
_MIN_BASE64_LINE_CHARS = 12
#: A shorter beginning of a secret says little, and is the end of many words.
_HEAD_CHARS = 4
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
            self._note_beginnings()

    def _note_beginnings(self) -> None:
        """What tells quickly that no secret begins somewhere."""
        self._longest = len(self._forms[0]) if self._forms else 0
        self._heads = {form[:_HEAD_CHARS] for form in self._forms if len(form) > _HEAD_CHARS}
        sizes = range(1, _HEAD_CHARS)
        self._starts = self._heads | {form[:size] for form in self._forms for size in sizes}
        by_letter: dict[str, list[str]] = {}
        for form in self._forms:
            by_letter.setdefault(form[0], []).append(form)
        self._by_letter = by_letter

    def finds(self, document: str) -> bool:
        """Whether there is a secret in a JSON text, in any of its forms: mostly there is none."""
        return any(form in document for form in self._forms)

    def mask(self, text: str) -> str:
        spans = [span for form in self._forms if form in text for span in _spans(text, form)]
        return _covered(text, spans) if spans else text

    def has_head(self, text: str) -> bool:
        """Whether some secret may begin in a text, with more than its very first letters."""
        return any(head in text for head in self._heads)

    def beginning(self, text: str, *, thorough: bool) -> str:
        """The longest end of a text with which a secret may begin, and go on elsewhere.

        Where no secret has its head in the text, only its last letters are to be looked at.
        """
        first = max(0, len(text) - (self._longest if thorough else _HEAD_CHARS - 1))
        for start in range(first, len(text)):
            if text[start : start + _HEAD_CHARS] in self._starts:
                rest = text[start:]
                if any(form.startswith(rest) and form != rest for form in self._by_letter[rest[0]]):
                    return rest
        return ""

    def crossing(self, text: str, border: int) -> list[tuple[int, int]]:
        """Where the secrets are that begin before the border and end after it."""
        return [
            (start, start + len(form))
            for start in range(border)
            for form in self._by_letter.get(text[start], ())
            if text.startswith(form, start) and start + len(form) > border
        ]

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


class SplitRedactor:
    """Masks what a program prints piece by piece: Terraform ends a line of a provisioner's where it pauses.

    A secret may then begin in one piece and end in a later one. Nothing is held back for that: a beginning of
    some length is masked as soon as it is seen, and the rest when it comes.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._begun: dict[str, str] = {}

    def mask(self, source: str, piece: str, *, thorough: bool) -> str:
        """A piece without the parts of secrets that go on in its neighbours. See `Redactor.beginning`."""
        before = self._begun.pop(source, "")
        joined, known = before + piece, len(before)
        begun = self._redactor.beginning(joined, thorough=thorough or bool(before))
        spans = self._redactor.crossing(joined, known) if before else []
        if begun:
            self._begun[source] = begun
            if len(begun) >= _HEAD_CHARS and any(map(str.isalnum, begun)):
                spans.append((len(joined) - len(begun), len(joined)))
        covered = [(max(0, start - known), end - known) for start, end in spans]
        return _covered(piece, covered) if covered else piece


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for one in value.values():
            yield from _leaves(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _leaves(one)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
        if isinstance(value, float) and value.is_integer():
            yield str(int(value))  # as Terraform writes 1e10


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
    yield from _url_encodings(secret)
    yield from _json_encodings(secret)
    yield from _base64_encodings(secret.encode("utf-8", "replace"))


def _url_encodings(secret: str) -> Iterator[str]:
    for left in _LEFT_IN_URLS:
        encoded = quote(secret, safe=left)
        yield encoded
        yield _PERCENT.sub(lambda escape: escape[0].lower(), encoded)
    yield quote_plus(secret)


def _json_encodings(secret: str) -> Iterator[str]:
    for ascii_only in (True, False):
        escaped = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        # Go writes these three as escapes, so that JSON can stand in HTML.
        for_html = escaped.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
        for one in (escaped, for_html, escaped.replace("/", "\\/")):
            yield one
            yield json.dumps(one)[1:-1]  # JSON in a JSON text, as in a provider's error.


def _base64_encodings(secret: bytes) -> Iterator[str]:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(secret).decode()
        yield whole
        yield whole.rstrip("=")
        if len(secret) >= _MIN_INNER_BASE64_BYTES:
            yield from _wrapped_base64(whole)
            for offset in range(3):
                yield _inner_base64(encode(b"\0" * offset + secret).decode(), offset)


def _wrapped_base64(whole: str) -> Iterator[str]:
    """The lines into which `base64` and `openssl` break a long text, without the end of the last one.

    That depends on what follows the secret, such as the newline of `echo`.
    """
    for width in _BASE64_LINE_CHARS:
        lines = [whole[:-4][start : start + width] for start in range(0, len(whole), width)]
        if len(lines) > 1:
            yield from (line for line in lines if len(line) >= _MIN_BASE64_LINE_CHARS)


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
