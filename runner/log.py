"""The delivery of a log: masked, numbered, batched, and in order, also through outages of the console."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from json.encoder import encode_basestring
from pathlib import Path
from typing import IO, Any, NamedTuple

from runner import clock
from runner.client import ConsoleAway, LogFull, LogGap, Refused
from runner.protocol import (
    EMPTY_CHAIN,
    MAX_BATCH_BYTES,
    MAX_BATCH_LINES,
    MAX_LINE_CHARS,
    MAX_LOG_BYTES,
    LogAnswer,
    LogLevel,
    LogReceipt,
    extend_chain,
)
from runner.redact import Redactor, SplitRedactor
from runner.terraform.output import Event

logger = logging.getLogger(__name__)

#: A batch goes out this long after its first line, which is below what a person notices, or when it has
#: so many lines.
BATCH_SECONDS = 0.1
DUE_LINES = 500
#: Half of what the console takes: nginx in front of it takes 1 MiB unless it is told otherwise, and a log
#: must not stop for that. There is room for the batch's own fields around its lines, and for the 12 bytes
#: (`,"data":null`) that the console counts on each line without data.
_BATCH_BYTES = MAX_BATCH_BYTES // 2 - 4096 - 12 * MAX_BATCH_LINES
#: An event larger than this (an output of many kilobytes) keeps its message and loses its data.
MAX_DATA_BYTES = 256 * 1024
#: The most that waits in memory for an absent console; the rest waits on disk.
MEMORY_BYTES = 8 * 1024 * 1024
#: More than the longest line, so that each read finds the end of one.
_FETCH_BYTES = MAX_BATCH_BYTES
#: Accepted batches to keep, in case the console lost its last moments in a crash.
KEPT_BATCHES = 16


class Line(NamedTuple):
    message: str
    wire: bytes  # the LogLine as JSON


class Batch(NamedTuple):
    first_seq: int
    lines: Sequence[Line]
    chain_before: str

    @property
    def next_seq(self) -> int:
        return self.first_seq + len(self.lines)

    @property
    def chain(self) -> str:
        return extend_chain(self.chain_before, (line.message for line in self.lines))


#: Delivers one batch, with as many tries as it takes: (first_seq, lines as JSON).
Send = Callable[[int, list[bytes]], LogAnswer]


class LogPipe:
    """Takes lines from the attempt and ships them from a thread of its own."""

    def __init__(
        self,
        *,
        send: Send,
        first_seq: int,
        redactor: Redactor,
        spool_dir: Path,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._send = send
        self._redactor = redactor
        self._split_redactor = SplitRedactor(redactor)
        self._ready = threading.Condition()
        self._waiting = Spool(directory=spool_dir, memory_bytes=memory_bytes)
        self._oldest_at = 0.0
        self._closing = False
        self._refused = False  # stale, full or lost: nothing more is accepted
        self._next_seq = first_seq
        self._chain = EMPTY_CHAIN
        self._lost = 0
        self._kept: deque[Batch] = deque(maxlen=KEPT_BATCHES)
        self._again: deque[Batch] = deque()
        self._thread = threading.Thread(target=self._ship, name="log", daemon=True)

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def write(
        self, message: str, level: LogLevel = LogLevel.INFO, data: dict[str, Any] | None = None
    ) -> None:
        """Add a line. A message of several lines becomes several, the data going with the first."""
        self._add(list(self._mask_lines(message, level, data)))

    def write_events(self, events: Iterable[Event], printed: Sequence[str]) -> None:
        """Add the events of a command; `printed` are the lines that they were read from.

        Searching all of them at once for secrets takes a tenth of searching line by line, and mostly there
        is none.
        """
        output = "\n".join(printed)
        has_secret = self._redactor.has_secret(output)
        has_head = "provision_progress" in output and self._redactor.has_head(output)
        lines: list[Line] = []
        for text, level, data, is_verbatim, piece in events:
            message = self._without_split_secrets(text, *piece, thorough=has_head) if piece else text
            if is_verbatim and not has_secret:
                lines.append(_line(_storable(message), level, data))
            else:
                lines += self._mask_lines(message, level, data)
        self._add(lines)

    def _without_split_secrets(self, message: str, source: str, piece: str, *, thorough: bool) -> str:
        masked = self._split_redactor.mask(source, piece, thorough=thorough)
        return message if masked == piece else message.removesuffix(piece) + masked

    def _mask_lines(self, message: str, level: LogLevel, data: dict[str, Any] | None) -> Iterator[Line]:
        mask = self._redactor.mask
        if data and self._redactor.has_secret(_json(data)):
            data = self._mask_data(data)
        for part in message.split("\n"):
            yield _line(mask(_storable(part)), level, data)
            data = None

    def _mask_data(self, data: dict[str, Any]) -> dict[str, Any]:
        try:
            return dict(self._redactor.mask_all(data))
        except RecursionError:  # Lists in lists in lists: a job must not fail for them.
            return _cut_data(data)

    def _add(self, lines: Iterable[Line]) -> None:
        with self._ready:
            if self._refused or self._closing:  # Threads that a stop left behind may still write.
                return
            was_empty = not self._waiting
            if was_empty:
                self._oldest_at = clock.now()
            for line in lines:
                self._put(line)
            # The thread is woken for the first line and for a due batch only.
            if was_empty or self._is_due():
                self._ready.notify()

    def close(self) -> LogReceipt:
        """Deliver all that waits; returns how far the log went."""
        with self._ready:
            self._closing = True
            self._ready.notify()
        self._thread.join()
        self._waiting.close()
        return LogReceipt(next_seq=self._next_seq, chain=self._chain)

    def _put(self, line: Line) -> None:
        """Keep a line; a notice replaces lines for which there was no space."""
        if self._lost:
            notice = _line(f"{self._lost} lines are missing here: no space to keep them", LogLevel.WARN, None)
            self._lost = 0 if self._waiting.put(notice) else self._lost
        if self._lost or not self._waiting.put(line):
            self._lost += 1

    def _ship(self) -> None:
        while batch := self._next_batch():
            try:
                self._deliver(batch)
            except (Refused, ConsoleAway) as reason:
                self._stop_shipping(reason)

    def _next_batch(self) -> Batch | None:
        """Return the next lines to send, or None when the pipe is closed and empty."""
        with self._ready:
            self._ready.wait_for(lambda: self._waiting or self._closing or self._again)
            if self._again:
                return self._again.popleft()
            self._ready.wait_for(self._is_due, timeout=self._oldest_at + BATCH_SECONDS - clock.now())
            # Lines that came meanwhile are included: four times the lines take half as long again.
            lines = self._waiting.take(lines=MAX_BATCH_LINES, size=_BATCH_BYTES)
            self._oldest_at = clock.now()
            return Batch(self._next_seq, lines, self._chain) if lines else None

    def _is_due(self) -> bool:
        return self._closing or len(self._waiting) >= DUE_LINES or self._waiting.size >= _BATCH_BYTES

    def _deliver(self, batch: Batch) -> None:
        try:
            self._send(batch.first_seq, [line.wire for line in batch.lines])
        except LogGap as gap:
            self._rewind(batch, gap)
            return
        self._next_seq, self._chain = batch.next_seq, batch.chain
        self._kept.append(batch)

    def _rewind(self, batch: Batch, gap: LogGap) -> None:
        """Send the batches again that the console lost, from the line that it expects, and then this one."""
        again = [earlier for earlier in self._kept if earlier.first_seq >= gap.expected_seq]
        if not again or again[0].first_seq != gap.expected_seq:
            raise gap
        logger.warning("The console lost lines from %d on; sending them again.", gap.expected_seq)
        self._next_seq, self._chain = again[0].first_seq, again[0].chain_before
        self._kept.clear()
        self._again.extendleft(reversed([*again, batch]))

    def _stop_shipping(self, reason: Exception) -> None:
        if isinstance(reason, LogFull):
            logger.info("The console's limit for this log is reached; the rest of it is dropped.")
        else:
            logger.warning("The rest of this attempt's log cannot be delivered: %s", reason)
        with self._ready:
            self._refused = True
            self._again.clear()
            self._waiting.clear()


class Spool:
    """First in, first out: in memory up to a limit, then in an unnamed file. Holds masked lines only."""

    def __init__(self, *, directory: Path, memory_bytes: int) -> None:
        self._directory = directory
        self._memory_bytes = memory_bytes
        self._memory: deque[Line] = deque()
        self._file: IO[bytes] | None = None
        self._read_at = 0
        self._write_at = 0
        self._on_disk = 0
        self.size = 0

    def __len__(self) -> int:
        return len(self._memory) + self._on_disk

    def put(self, line: Line) -> bool:
        """Add a line; returns False when there is no space for it."""
        size = self.size + len(line.wire)
        if size > MAX_LOG_BYTES:
            return False
        if not self._on_disk and size <= self._memory_bytes:
            self._memory.append(line)
        elif not self._put_on_disk(line.wire + b"\n"):
            return False
        self.size = size
        return True

    def take(self, *, lines: int, size: int) -> list[Line]:
        """Return the oldest lines, within both limits; at least one if there is any."""
        oldest: list[Line] = []
        while len(oldest) < lines and (self._memory or self._on_disk):
            if not self._memory:
                self._fetch_from_disk()
            wire_bytes = len(self._memory[0].wire)
            if oldest and size < wire_bytes:
                break
            oldest.append(self._memory.popleft())
            size -= wire_bytes + 1
            self.size -= wire_bytes
        return oldest

    def clear(self) -> None:
        self._memory.clear()
        self.close()
        self._on_disk = self.size = 0

    def close(self) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def _put_on_disk(self, wire: bytes) -> bool:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._directory, buffering=0)  # noqa: SIM115
                self._read_at = self._write_at = 0
            # The position moves on only after the whole line: half a line is overwritten by the next.
            written = os.pwrite(self._file.fileno(), wire, self._write_at)
        except OSError as error:
            logger.error("A log line cannot be kept for later: %s", error)
            return False
        if written < len(wire):
            return False
        self._write_at += written
        self._on_disk += 1
        return True

    def _fetch_from_disk(self) -> None:
        assert self._file is not None
        chunk = os.pread(
            self._file.fileno(), min(_FETCH_BYTES, self._write_at - self._read_at), self._read_at
        )
        whole = chunk[: chunk.rindex(b"\n") + 1]
        for wire in whole.splitlines():
            self._memory.append(Line(json.loads(wire)["message"], wire))
            self._on_disk -= 1
        self._read_at += len(whole)
        if not self._on_disk:
            self.close()


def _line(message: str, level: LogLevel, data: dict[str, Any] | None) -> Line:
    """Make a line of masked text. It is cut only now: a cut secret could not be recognised."""
    message = _cut(message)
    text = f'{{"at":"{clock.timestamp()}","level":"{level}","message":{encode_basestring(message)}'
    text += f',"data":{_data(data)}}}' if data else "}"
    return Line(message, text.encode("utf-8", "replace"))


def _data(data: dict[str, Any]) -> str:
    text = _json(data)
    if "\\u0000" in text:
        text = _json(_storable_all(json.loads(text)))
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return text if size <= MAX_DATA_BYTES else _json(_cut_data(data))


def _cut_data(data: dict[str, Any]) -> dict[str, Any]:
    return {"kind": data.get("kind"), "cut": True}


def _storable(text: str) -> str:
    """Return text that every store accepts: PostgreSQL refuses NUL, UTF-8 has no lone surrogates."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _cut(message: str) -> str:
    if len(message) <= MAX_LINE_CHARS:
        return message
    length = MAX_LINE_CHARS - 40
    return f"{message[:length]} … ({len(message) - length} more characters)"


def _storable_all(value: Any) -> Any:
    if isinstance(value, dict):
        return {_storable(key): _storable_all(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_storable_all(item) for item in value]
    return _storable(value) if isinstance(value, str) else value


#: Made once: `json.dumps` makes one for each call.
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
