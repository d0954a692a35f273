"""Masks secrets in everything that leaves the runner, in each form in which Terraform may print them."""

from __future__ import annotations

import base64
import json
import re
import threading
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile
from typing import Any
from urllib.parse import quote, quote_plus

from ahocorasick_rs import BytesAhoCorasick, Implementation

MASK = "***"

Span = tuple[int, int]

#: Masking "a" or "no" would ruin the log and hide nothing.
_MIN_SECRET_CHARS = 3
#: Terraform prints a provisioner's output line by line, so each line of a secret is a secret. The
#: lines of a JSON key file that are only brackets are not.
_MIN_LINE_CHARS = 4
#: The characters that programs do not escape in a URL: none, those of paths, Go's in a path's segment and in
#: a user's password, and those of JavaScript's `encodeURIComponent`.
_UNESCAPED_IN_URLS = ("", "/", "$&+:=@", "$&+,;=", "!'()*")
_PERCENT = re.compile("%..")
#: The line lengths of `base64` and `openssl base64`.
_BASE64_LINE_CHARS = (76, 64)
_MIN_BASE64_LINE_CHARS = 12
#: A shorter beginning of a secret says little, and is the end of many words.
_HEAD_BYTES = 4
#: Below this, the part of a base64 text that does not depend on its neighbours is too short to mask.
_MIN_INNER_BASE64_BYTES = 8


class Redactor:
    """Holds the secrets of one attempt. More can be added at any time, from any thread."""

    def __init__(self, secrets: Iterable[Any] = ()) -> None:
        self._secrets = _SecretForms(frozenset())
        self._adding = threading.Lock()
        self.add(*secrets)

    def add(self, *values: Any) -> None:
        """Mask these values from now on: text, numbers, and everything in lists and maps."""
        new_forms = {form for value in values for secret in _scalars(value) for form in _forms(secret)}
        with self._adding:
            forms = self._secrets.forms.union(map(_encode, new_forms))
            if forms != self._secrets.forms:
                self._secrets = _SecretForms(forms)

    def has_secret(self, document: str) -> bool:
        """Return whether a JSON text has a secret in any of its forms: mostly it has none."""
        return bool(self._secrets.spans(_encode(document)))

    def mask(self, text: str) -> str:
        encoded = _encode(text)
        spans = self._secrets.spans(encoded)
        return _decode(_mask_spans(encoded, spans)) if spans else text

    def mask_all(self, value: Any) -> Any:
        """Return the JSON value with every text in it masked, keys included."""
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, dict):
            return {self.mask(str(key)): self.mask_all(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.mask_all(item) for item in value]
        # A secret number must not slip through because it is not text.
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return MASK if is_number and _encode(str(value)) in self._secrets.forms else value

    def has_head(self, text: str) -> bool:
        """Return whether a secret may begin in a text, with more than its very first letters."""
        return self._secrets.has_head(_encode(text))

    def split(self, before: bytes, piece: bytes, *, thorough: bool) -> tuple[list[Span], bytes]:
        """Return the spans of secrets that begin before a piece and end in it, and one's start at its end."""
        secrets, joined, border = self._secrets, before + piece, len(before)
        crossing = [span for span in secrets.spans(joined) if span[0] < border < span[1]] if before else []
        return crossing, secrets.beginning(joined, border=border, thorough=thorough)


class _SecretForms:
    """The forms of all secrets, ready for a search. It never changes, so that each search sees all of them.

    The forms are bytes, since texts can hold anything, and one pass searches for all: a private key alone has
    two hundred of them.
    """

    def __init__(self, forms: frozenset[bytes]) -> None:
        self.forms = forms
        self._sorted = sorted(forms)
        self._longest = max(map(len, forms), default=0)
        self._heads = {form[:_HEAD_BYTES] for form in forms if len(form) > _HEAD_BYTES}
        self._finder = _finder(self._sorted)
        self._head_finder = _finder(self._heads)

    def spans(self, text: bytes) -> list[Span]:
        """Return the spans of secrets in a text; they may overlap."""
        return [
            (start, end) for _, start, end in self._finder.find_matches_as_indexes(text, overlapping=True)
        ]

    def has_head(self, text: bytes) -> bool:
        return bool(self._head_finder.find_matches_as_indexes(text))

    def beginning(self, text: bytes, *, border: int, thorough: bool) -> bytes:
        """Return the longest end of a text with which a secret may begin, to continue elsewhere.

        Unless thorough, only the last bytes after the border are searched: no secret has its head there.
        """
        last = len(text) - _HEAD_BYTES
        starts = chain(range(border), range(border if thorough else max(border, last + 1), len(text)))
        for start in dropwhile(lambda start: start < len(text) - self._longest, starts):
            # The head tells quickly that none begins here, except in the last bytes.
            is_possible = start > last or text[start : start + _HEAD_BYTES] in self._heads
            if is_possible and self._goes_on(rest := text[start:]):
                return rest
        return b""

    def _goes_on(self, begun: bytes) -> bool:
        """Return whether some form begins like that and is longer."""
        following = bisect_right(self._sorted, begun)
        return following < len(self._sorted) and self._sorted[following].startswith(begun)


def _finder(forms: Iterable[bytes]) -> BytesAhoCorasick:
    # The smallest there is: an attempt makes several, and the search is a small part of a line's cost.
    return BytesAhoCorasick(forms, implementation=Implementation.ContiguousNFA)


class SplitRedactor:
    """Masks output that comes in pieces: Terraform ends a line of a provisioner where that pauses.

    A secret may then begin in one piece and end in a later one. Nothing is held back for that: a beginning of
    some length is masked as soon as it is seen, and the rest when it comes.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._begun: dict[str, bytes] = {}

    def mask(self, source: str, piece: str, *, thorough: bool) -> str:
        """Mask the parts of secrets that continue in other pieces. See `_SecretForms.beginning`."""
        before, encoded = self._begun.pop(source, b""), _encode(piece)
        spans, begun = self._redactor.split(before, encoded, thorough=thorough)
        end = len(before) + len(encoded)
        if begun:
            self._begun[source] = begun
            if len(begun) >= _HEAD_BYTES and any(map(str.isalnum, _decode(begun))):
                spans.append((end - len(begun), end))
        covered = [(max(0, start - len(before)), end - len(before)) for start, end in spans]
        return _decode(_mask_spans(encoded, covered)) if covered else piece


def _scalars(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _scalars(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _scalars(item)
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
    for unescaped in _UNESCAPED_IN_URLS:
        encoded = quote(secret, safe=unescaped, errors="surrogatepass")
        yield encoded
        yield _PERCENT.sub(lambda escape: escape[0].lower(), encoded)
    yield quote_plus(secret, errors="surrogatepass")


def _json_encodings(secret: str) -> Iterator[str]:
    for ascii_only in (True, False):
        escaped = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        # Go writes these three as escapes, so that JSON can stand in HTML.
        for_html = escaped.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
        for text in (escaped, for_html, escaped.replace("/", "\\/")):
            yield text
            yield json.dumps(text)[1:-1]  # JSON in a JSON text, as in a provider's error.


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
    """Return the lines into which `base64` and `openssl` break a long text, without the last one's end.

    That depends on what follows the secret, such as the newline of `echo`.
    """
    for width in _BASE64_LINE_CHARS:
        lines = [whole[:-4][start : start + width] for start in range(0, len(whole), width)]
        if len(lines) > 1:
            yield from (line for line in lines if len(line) >= _MIN_BASE64_LINE_CHARS)


def _inner_base64(text: str, offset: int) -> str:
    """Return the part that does not depend on the text around the secret, as in base64("user:secret")."""
    start = (0, 2, 3)[offset]  # 8 and 16 foreign bits reach into 2 and 3 characters.
    end = len(text) - 4 if text.endswith("=") else len(text)
    return text[start:end]


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")


def _mask_spans(text: bytes, spans: list[Span]) -> bytes:
    """Replace the union of the spans, so that two overlapping secrets leave nothing of either."""
    pieces: list[bytes] = []
    position = 0
    for start, end in sorted(spans):
        if start >= position:
            pieces += (text[position:start], MASK.encode())
        position = max(position, end)
    return b"".join([*pieces, text[position:]])
