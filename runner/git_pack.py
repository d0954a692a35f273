"""Bounds on what a Git server sends: how large a pack becomes is counted before any of it is kept."""

from __future__ import annotations

import zlib
from typing import IO

OFFSET_DELTA, REFERENCE_DELTA = 6, 7
CHUNK_BYTES = 64 * 1024
#: The sizes at the head of a delta: two numbers of at most ten bytes each.
DELTA_HEAD_BYTES = 20


class PackTooLarge(ValueError):
    """The pack holds more than is taken."""


class NotAPack(ValueError):
    """The bytes are not a pack."""


def check_pack(pack: IO[bytes], *, limit_bytes: int) -> None:
    """Read through the pack without keeping its objects, and refuse it if they exceed the limit."""
    pack.seek(0)
    head = pack.read(12)
    if len(head) < 12 or head[:4] != b"PACK":
        raise NotAPack("the answer is not a Git pack")
    total = 0
    for _ in range(int.from_bytes(head[8:12], "big")):
        total += _object_size(pack, limit_bytes - total)
        if total > limit_bytes:
            raise PackTooLarge
    pack.seek(0, 2)


def _object_size(pack: IO[bytes], limit_bytes: int) -> int:
    """Return the size of one entry: its own, or that of the object that a delta makes."""
    first = _byte(pack)
    kind, declared = (first >> 4) & 7, first & 15
    if first & 0x80:
        declared |= _number(pack) << 4
    if declared > limit_bytes:
        raise PackTooLarge
    if kind == OFFSET_DELTA:
        while _byte(pack) & 0x80:
            pass
    elif kind == REFERENCE_DELTA:
        pack.read(20)
    head = _inflate(pack, declared)
    return max(declared, _delta_result(head)) if kind in (OFFSET_DELTA, REFERENCE_DELTA) else declared


def _inflate(pack: IO[bytes], declared: int) -> bytes:
    """Move past one compressed stream; returns its first bytes."""
    stream, size, head = zlib.decompressobj(), 0, b""
    waiting = b""
    while not stream.eof:
        waiting = waiting or pack.read(CHUNK_BYTES)
        if not waiting:
            raise NotAPack("the Git pack ends too early")
        try:
            chunk = stream.decompress(waiting, CHUNK_BYTES)
        except zlib.error as error:
            raise NotAPack(f"the Git pack is damaged: {error}") from error
        waiting = stream.unconsumed_tail
        size += len(chunk)
        head = (head + chunk)[:DELTA_HEAD_BYTES]
        if size > declared:
            raise NotAPack("an object of the Git pack is larger than it says")
    pack.seek(-len(stream.unused_data), 1)
    return head


def _delta_result(head: bytes) -> int:
    """Return the size of the object that a delta makes: the second number of its head."""
    numbers, number, shift = [], 0, 0
    for byte in head:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            numbers.append(number)
            number, shift = 0, 0
    return numbers[1] if len(numbers) > 1 else 0


def _number(pack: IO[bytes]) -> int:
    number, shift = 0, 0
    while True:
        byte = _byte(pack)
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80 or shift > 63:
            return number


def _byte(pack: IO[bytes]) -> int:
    byte = pack.read(1)
    if not byte:
        raise NotAPack("the Git pack ends too early")
    return byte[0]
