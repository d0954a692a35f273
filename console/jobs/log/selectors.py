"""Reading a job's log: batches, lines, text, searching, and whether it is complete."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db.models import F, Max

from console.jobs.models import Attempt, Job, JobClaim, LogChunk
from console.jobs.selectors import attempts_of
from runner.protocol import LogLevel

#: A chunk's level mask: the levels that occur in it, worse ones in higher bits.
LEVEL_BITS = {level.value: 1 << index for index, level in enumerate(LogLevel)}


ALL_LEVELS = sum(LEVEL_BITS.values())


#: The beginning of a colour, as JSON writes it.
ESCAPE = "\\u001b"


#: A terminal's escape sequences: colours, links, moves of the cursor.
TERMINAL = re.compile(r"\x1b(?:\[[0-9;:]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")


@dataclass(frozen=True)
class Chunk:
    """A stretch of log lines, each still JSON as it was stored."""

    first_seq: int
    lines: list[str]

    @property
    def next_seq(self) -> int:
        return self.first_seq + len(self.lines)

    @cached_property
    def frame(self) -> str:
        """The message that a socket sends, written once for all readers."""
        return f'{{"type":"log","first_seq":{self.first_seq},"lines":[{",".join(self.lines)}]}}'

    def after(self, seq: int) -> "Chunk":
        """Return the lines after line `seq`."""
        skip = max(0, seq + 1 - self.first_seq)
        return self if skip == 0 else Chunk(self.first_seq + skip, self.lines[skip:])


def log_chunks(job_id: UUID, *, after: int = 0, limit: int = 20, level_mask: int = ALL_LEVELS) -> list[Chunk]:
    """Return up to `limit` stored batches with lines after `after` and with these levels, in order."""
    chunks = LogChunk.objects.filter(job_id=job_id)
    # The batch that holds the next line may begin before it.
    begins = chunks.filter(first_seq__lte=after + 1).aggregate(first_seq=Max("first_seq"))["first_seq"] or 0
    if level_mask != ALL_LEVELS:
        chunks = chunks.alias(levels=F("level_mask").bitand(level_mask)).filter(levels__gt=0)
    rows = chunks.filter(first_seq__gte=begins).order_by("first_seq").values_list("first_seq", "lines")
    read = [Chunk(first_seq, lines.split("\n")).after(after) for first_seq, lines in rows[: limit + 1]]
    return [chunk for chunk in read if chunk.lines][:limit]


def log_lines(
    job: Job, *, after: int = 0, limit: int = 500, level: str | None = None
) -> list[tuple[int, dict[str, Any]]]:
    """Return numbered lines after `after`, of this level or a more severe one."""
    levels = {name for name, bit in LEVEL_BITS.items() if level is None or bit >= LEVEL_BITS[level]}
    mask = sum(LEVEL_BITS[name] for name in levels)
    matches: list[tuple[int, dict[str, Any]]] = []
    while len(matches) < limit and (chunks := log_chunks(job.pk, after=after, level_mask=mask)):
        for chunk in chunks:
            lines = ((chunk.first_seq + index, orjson.loads(line)) for index, line in enumerate(chunk.lines))
            matches += [(seq, line) for seq, line in lines if line["level"] in levels]
        after = chunks[-1].next_seq - 1
    return matches[:limit]


def log_text(job: Job) -> Iterator[str]:
    """Yield the whole log as plain text, a chunk at a time."""
    after = 0
    while chunks := log_chunks(job.pk, after=after):
        for chunk in chunks:
            yield "".join(f"{orjson.loads(line)['message']}\n" for line in chunk.lines)
        after = chunks[-1].next_seq - 1


@dataclass(frozen=True, slots=True)
class LogMatches:
    """The numbers of the lines that a search found, and how many there are beyond the limit."""

    seqs: list[int]
    total: int


def search_log(job: Job, text: str, *, limit: int = 5_000) -> LogMatches:
    """Find the lines whose visible text contains `text`, ignoring case, over the whole log.

    In Python, which folds the case of a whole batch several times faster than PostgreSQL does.
    """
    needle = text.casefold()
    stored = orjson.dumps(needle).decode()[1:-1]
    seqs: list[int] = []
    total = 0
    rows = LogChunk.objects.filter(job_id=job.pk).order_by("first_seq").values_list("first_seq", "lines")
    for first_seq, lines in rows.iterator(chunk_size=50):
        if not _may_have(lines, stored):
            continue
        for index, line in enumerate(lines.split("\n")):
            if _may_have(line, stored) and needle in visible_text(orjson.loads(line)["message"]).casefold():
                total += 1
                if len(seqs) < limit:
                    seqs.append(first_seq + index)
    return LogMatches(seqs, total)


def _may_have(text: str, stored: str) -> bool:
    """Rule out most stored JSON cheaply. Its keys may match too, and a colour may split a word."""
    return stored in text.casefold() or ESCAPE in text


def log_events(job: Job, *, before: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the lines up to `before` that carry more than text: phases, resources, diagnostics."""
    rows = LogChunk.objects.filter(job_id=job.pk, first_seq__lte=before).order_by("first_seq")
    for first_seq, lines in rows.values_list("first_seq", "lines").iterator(chunk_size=50):
        for index, line in enumerate(lines.split("\n")):
            # As they are stored, lines without data end like this: parsing them all takes ten times longer.
            if not line.endswith('"data":null}') and first_seq + index <= before:
                yield first_seq + index, orjson.loads(line)


def visible_text(message: str) -> str:
    """Return the line without a terminal's escape sequences. The same as `plain` in ansi.js."""
    return TERMINAL.sub("", message) if "\x1b" in message else message


def last_log_seq(job: Job) -> int:
    """Return the number of the log's last line; 0 when it has none."""
    live = JobClaim.objects.filter(job=job).values_list("log_next_seq", flat=True).first()
    return (live or Job.objects.values_list("log_next_seq", flat=True).get(pk=job.pk)) - 1


def log_completeness(job: Job, attempts: list[Attempt] | None = None) -> str:
    """Return "complete", or which lines are missing, as the last attempt reported; empty while it runs."""
    if not job.is_final:
        return ""
    attempts = attempts_of(job) if attempts is None else attempts
    attempt = attempts[-1] if attempts else None
    if attempt is None:
        return "complete"
    if attempt.reported_log_next_seq is None:
        return "may end early: the attempt was lost before it reported"
    missing_from, missing_to = (
        attempt.log_next_seq or attempt.first_log_seq,
        attempt.reported_log_next_seq - 1,
    )
    if job.log_bytes > settings.SLIPWAY_MAX_LOG_BYTES:
        return "cut at the size limit"
    if missing_from <= missing_to:
        return f"lines {missing_from}–{missing_to} missing"
    if attempt.log_chain != attempt.reported_log_chain:
        return "differs from what the runner sent"
    return "complete"
