"""The part of a job's row that its page shows, read once per process however many watch it."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from console.errors import NotFound
from console.jobs.models import ErroredState, Job, JobClaim
from console.live.threads import in_thread

#: More jobs than this are not cached at once; the least recently read one is dropped.
MAX_JOBS = 1_000

FIELDS = ("status", "attempt_count", "cancel_requested_at", "retry_count", "error_code", "started_at")


@dataclass(frozen=True, slots=True)
class JobHeader:
    """A job's status and lease, and a version that differs whenever the page must fetch its header again."""

    status: str
    version: tuple[Any, ...]
    #: When the runner's last heartbeat came, and when its lease ends.
    lease: tuple[str, str] | None
    #: When it had been read: every line that led to it was in the database by then.
    read_at: float = 0.0


@dataclass(slots=True)
class _Entry:
    header: JobHeader | None = None
    #: When the read began: a reader that was woken before that need not read again.
    read_began_at: float = 0.0
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)


class JobHeaderCache:
    def __init__(self) -> None:
        self._entries: OrderedDict[UUID, _Entry] = OrderedDict()

    async def read(self, job_id: UUID, *, woken_at: float) -> JobHeader:
        """Return the header as it was at `woken_at` or later."""
        entry = self._entries.setdefault(job_id, _Entry())
        self._entries.move_to_end(job_id)
        while len(self._entries) > MAX_JOBS:
            self._entries.popitem(last=False)
        async with entry.reading:
            if entry.header is None or entry.read_began_at < woken_at:
                loop = asyncio.get_running_loop()
                began_at, header = loop.time(), await in_thread(_read_header, job_id)
                entry.header, entry.read_began_at = replace(header, read_at=loop.time()), began_at
        return entry.header


def _read_header(job_id: UUID) -> JobHeader:
    row: tuple[Any, ...] | None = Job.objects.filter(pk=job_id).values_list(*FIELDS).first()
    if row is None:
        raise NotFound
    # An errored state may come at any time, also after the end.
    errored_states = ErroredState.objects.filter(attempt__job_id=job_id).count()
    times = JobClaim.objects.filter(job_id=job_id).values_list("heartbeat_at", "expires_at").first()
    lease = (times[0].isoformat(), times[1].isoformat()) if times else None
    return JobHeader(row[0], (*row, errored_states, lease is not None), lease)


job_headers = JobHeaderCache()
