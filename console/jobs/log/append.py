"""Appending batches of log lines, each checked, masked and numbered without a gap."""

import hashlib
from dataclasses import dataclass
from typing import Any

import orjson
from django.conf import settings
from django.utils import timezone

from console.accounts.tokens import ANY_TOKEN
from console.errors import (
    InvalidMessage,
    LogFull,
    LogGap,
    StaleClaim,
    TooLarge,
)
from console.jobs import queue
from console.jobs.log.masking import Secrets, mask_value, secrets_of
from console.jobs.log.selectors import LEVEL_BITS
from console.jobs.queue import Held
from console.live import topics
from console.live.publish import publish_on_commit
from console.runners.recognition import require_verified
from runner.protocol import (
    MASK,
    MAX_BATCH_BYTES,
    MAX_BATCH_LINES,
    MAX_LINE_CHARS,
)


@dataclass(frozen=True, slots=True)
class IncomingBatch:
    """A batch as it came, unchecked."""

    first_seq: int
    lines: list[Any]


def append_log(*, held: Held, incoming: IncomingBatch) -> int:
    """Append a batch of log lines, and return the number of the next line."""
    batch = _check(incoming, secrets_of(held))
    size = queue.append_log(held=held, batch=batch, limit_bytes=settings.SLIPWAY_MAX_LOG_BYTES)
    if size is None:
        require_verified(held.credential)
        return _explain_no_append(held, batch)
    next_seq = batch.first_seq + batch.line_count
    if size > settings.SLIPWAY_MAX_LOG_BYTES:
        next_seq = _append_truncation_notice(held, next_seq)
    publish_on_commit(topics.job(held.job_id))
    return next_seq


def _check(incoming: IncomingBatch, secrets: Secrets) -> queue.Batch:
    """Return the batch as it is stored, or refuse it and name the line."""
    if not 0 < len(incoming.lines) <= MAX_BATCH_LINES:
        raise TooLarge(f"A batch has between 1 and {MAX_BATCH_LINES} lines, not {len(incoming.lines)}.")
    texts, digest, levels = [], hashlib.sha256(), 0
    for index, line in enumerate(incoming.lines):
        message = _message(line, index)
        digest.update(message.encode() + b"\n")
        levels |= LEVEL_BITS[line["level"]]
        content = {"message": message, "data": line.get("data")}
        if secrets:
            content = mask_value(content, secrets)
        texts.append(orjson.dumps({"at": line["at"], "level": line["level"], **content}).decode())
    # One of our own tokens may be in any field, and the runner does not know all of them.
    stored = ANY_TOKEN.sub(MASK, "\n".join(texts))
    batch = queue.Batch(
        first_seq=incoming.first_seq,
        line_count=len(texts),
        level_mask=levels,
        lines=stored,
        digest=digest.digest(),
    )
    if batch.size_bytes > MAX_BATCH_BYTES:
        raise TooLarge(f"A batch has at most {MAX_BATCH_BYTES} bytes. Send fewer lines at a time.")
    return batch


def _append_truncation_notice(held: Held, seq: int) -> int:
    """Append the last line of a log that has reached its limit, and return the number of the next one."""
    limit = settings.SLIPWAY_MAX_LOG_BYTES // (1024 * 1024)
    line = {
        "at": timezone.now().isoformat(),
        "level": "warn",
        "message": f"The log has reached its limit of {limit} MiB. Later lines are discarded.",
        "data": {"kind": "truncated"},
    }
    batch = queue.Batch(
        first_seq=seq,
        line_count=1,
        level_mask=LEVEL_BITS["warn"],
        lines=orjson.dumps(line).decode(),
        digest=None,
    )
    # Past the limit by design: this is the line that says so.
    appended = queue.append_log(held=held, batch=batch, limit_bytes=2 * settings.SLIPWAY_MAX_LOG_BYTES)
    return seq if appended is None else seq + 1


def _message(line: Any, index: int) -> str:
    message, level = (line.get("message"), line.get("level")) if isinstance(line, dict) else (None, None)
    has_level = isinstance(level, str) and level in LEVEL_BITS
    if not isinstance(message, str) or not has_level or not isinstance(line.get("at"), str):
        raise InvalidMessage(f"lines[{index}]: expected at, level ({', '.join(LEVEL_BITS)}) and message")
    if len(message) > MAX_LINE_CHARS:
        raise TooLarge(f"lines[{index}]: a line has at most {MAX_LINE_CHARS} characters. Shorten it.")
    return message


def _explain_no_append(held: Held, batch: queue.Batch) -> int:
    position = queue.log_position(held=held)
    if position is None:
        raise StaleClaim
    next_seq, size = position
    if batch.first_seq + batch.line_count <= next_seq:
        return next_seq  # a repeat: it was stored the first time
    if batch.first_seq == next_seq and size > settings.SLIPWAY_MAX_LOG_BYTES:
        raise LogFull
    raise LogGap(f"The log continues at line {next_seq}, not {batch.first_seq}.", expected_seq=next_seq)
