"""What a job's page is told of the job's row, read once per process however many watch it."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from console.errors import NotFound
from console.jobs.models import ErroredState, Job, JobClaim
from console.live.threads import in_thread

#: More jobs than this are not watched at once; the one that was looked at longest ago is forgotten.
MAX_JOBS = 1_000

FIELDS = ("status", "attempt_count", "cancel_requested_at", "retry_count", "error_code", "started_at")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the header is made of, where any difference is a nudge to fetch it again; and the lease."""

    status: str
    header: tuple[Any, ...]
    #: When the runner was last heard, and when its hold ends.
    lease: tuple[str, str] | None
    #: When they were known: what led to them was in the database by then.
    known_at: float = 0.0


@dataclass(slots=True)
class _Known:
    facts: Facts | None = None
    #: When the look at the database began: whoever was woken before that need not look again.
    looked_at: float = 0.0
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)


class FactsBoard:
    def __init__(self) -> None:
        self._known: OrderedDict[UUID, _Known] = OrderedDict()

    async def read(self, job_id: UUID, *, woken_at: float) -> Facts:
        """The facts as they were at `woken_at` or later."""
        known = self._known.setdefault(job_id, _Known())
        self._known.move_to_end(job_id)
        while len(self._known) > MAX_JOBS:
            self._known.popitem(last=False)
        async with known.looking:
            if known.facts is None or known.looked_at < woken_at:
                loop = asyncio.get_running_loop()
                begun, facts = loop.time(), await in_thread(_read, job_id)
                known.facts, known.looked_at = replace(facts, known_at=loop.time()), begun
        return known.facts


def _read(job_id: UUID) -> Facts:
    row: tuple[Any, ...] | None = Job.objects.filter(pk=job_id).values_list(*FIELDS).first()
    if row is None:
        raise NotFound
    # A state that nobody could save may come at any time, also after the end.
    unsaved = ErroredState.objects.filter(attempt__job_id=job_id).count()
    times = JobClaim.objects.filter(job_id=job_id).values_list("heartbeat_at", "expires_at").first()
    lease = (times[0].isoformat(), times[1].isoformat()) if times else None
    return Facts(row[0], (*row, unsaved, lease is not None), lease)


board = FactsBoard()
