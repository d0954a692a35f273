"""The progress of running jobs: resources done, counted on from where the last read of the log ended."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from uuid import UUID

import orjson
from django.db import connection

#: More jobs than this are not remembered; a forgotten one is counted from its first line again.
REMEMBERED = 200
#: One look reads at most this many batches; a long log is caught up with in the next looks.
BATCHES = 400

#: Actions that a person would call progress: reading is not.
CHANGING = ("create", "update", "delete", "replace")

UNREAD = """
SELECT chunk.job_id, chunk.first_seq, chunk.line_count, chunk.lines
FROM unnest(%(jobs)s::uuid[], %(after)s::bigint[]) AS known (job_id, after)
JOIN jobs_logchunk chunk ON chunk.job_id = known.job_id AND chunk.first_seq > known.after
ORDER BY chunk.job_id, chunk.first_seq LIMIT %(limit)s
"""


@dataclass(slots=True)
class _Counted:
    last_seq: int = 0
    done: set[str] = field(default_factory=set)


_counted: OrderedDict[UUID, _Counted] = OrderedDict()
_lock = Lock()


def resources_done(job_ids: Iterable[UUID]) -> dict[UUID, int]:
    """Count the resources that each of these jobs has changed so far."""
    ids = list(job_ids)
    if not ids:
        return {}
    with _lock:
        _remember(ids)
        for job_id, first_seq, line_count, lines in _unread(ids):
            _count(_counted[job_id], first_seq, line_count, lines)
        return {job_id: len(_counted[job_id].done) for job_id in ids}


def _remember(ids: list[UUID]) -> None:
    for job_id in ids:
        _counted.setdefault(job_id, _Counted())
        _counted.move_to_end(job_id)
    while len(_counted) > max(REMEMBERED, len(ids)):
        _counted.popitem(last=False)


def _unread(ids: list[UUID]) -> list[tuple[UUID, int, int, str]]:
    values: dict[str, Any] = {
        "jobs": ids,
        "after": [_counted[job_id].last_seq for job_id in ids],
        "limit": BATCHES,
    }
    with connection.cursor() as cursor:
        cursor.execute(UNREAD, values)
        rows: list[tuple[UUID, int, int, str]] = cursor.fetchall()
    return rows


def _count(counted: _Counted, first_seq: int, line_count: int, lines: str) -> None:
    counted.last_seq = first_seq + line_count - 1
    for line in lines.split("\n"):
        if '"done"' not in line:
            continue
        data = orjson.loads(line).get("data") or {}
        if data.get("kind") == "resource" and data.get("event") == "done" and data.get("action") in CHANGING:
            counted.done.add(str(data.get("address")))
