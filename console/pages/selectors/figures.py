"""The figures of the last day: how deep the queue was, how long jobs waited, how they ended and how fast.

One statement looks at the newest `LOOKED_AT` jobs of the organization at most, by the index of job numbers:
with a million jobs it costs what it costs with ten thousand.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

#: The day in half hours.
BUCKETS = 48
BUCKET_SECONDS = 1_800
#: Beyond this many jobs in two days the figures are of the newest ones; the page says so.
LOOKED_AT = 10_000
#: A half hour without a move: nothing came, nothing left, nothing waited.
NOTHING = (0, 0, None, None)

#: Rows of two kinds, from one look at the jobs of two days: what waited when the day began counts too.
#: `queue`: for each half hour that anything happened in, what came, what left the queue, and the waits that
#: began. `ending`: for each type, how many ended in the day and how, and how long those took that succeeded.
FIGURES = """
WITH recent AS MATERIALIZED (
    SELECT type, status, created_at, claimed_at, finished_at, %(from)s::timestamptz AS day_begins
    FROM jobs_job
    WHERE organization_id = %(organization)s AND number > %(newest)s - %(looked_at)s
      AND created_at >= %(from)s::timestamptz - interval '1 day'
), moves AS (
    SELECT GREATEST(-1, floor(extract(epoch FROM created_at - day_begins) / %(bucket)s))::int AS bucket,
           count(*) AS came, 0 AS left_queue,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM claimed_at - created_at))
               FILTER (WHERE claimed_at IS NOT NULL AND created_at >= day_begins) AS median_wait,
           max(extract(epoch FROM claimed_at - created_at))
               FILTER (WHERE created_at >= day_begins)::float AS longest_wait
    FROM recent GROUP BY 1
    UNION ALL
    SELECT GREATEST(-1, floor(extract(epoch FROM COALESCE(claimed_at, finished_at) - day_begins)
                              / %(bucket)s))::int, 0, count(*), NULL, NULL
    FROM recent WHERE COALESCE(claimed_at, finished_at) IS NOT NULL GROUP BY 1
)
SELECT 'queue', bucket::text, sum(came)::int, sum(left_queue)::int, 0, max(median_wait), max(longest_wait)
FROM moves GROUP BY bucket
UNION ALL
SELECT 'ending', type, count(*) FILTER (WHERE status = 'SUCCESS')::int,
       count(*) FILTER (WHERE status = 'FAILED')::int, count(*) FILTER (WHERE status = 'CANCELLED')::int,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM finished_at - claimed_at))
           FILTER (WHERE status = 'SUCCESS'),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM finished_at - claimed_at))
           FILTER (WHERE status = 'SUCCESS')
FROM recent WHERE finished_at >= day_begins GROUP BY type
ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class HalfHour:
    """The queue in one half hour."""

    begins_at: datetime
    #: The most jobs that waited at its beginning or its end.
    depth: int
    median_wait_seconds: float | None
    longest_wait_seconds: float | None


@dataclass(frozen=True, slots=True)
class Ending:
    """The outcomes of the jobs of one type."""

    type: str
    succeeded: int
    failed: int
    cancelled: int
    median_seconds: float | None
    slow_seconds: float | None

    @property
    def total(self) -> int:
        return self.succeeded + self.failed + self.cancelled

    @property
    def success_percent(self) -> int | None:
        """The share of jobs that succeeded, without those that a person cancelled."""
        ended = self.succeeded + self.failed
        return round(100 * self.succeeded / ended) if ended else None


@dataclass(frozen=True, slots=True)
class Day:
    """The half hours of the last day, the oldest first, and how its jobs ended, by type."""

    half_hours: list[HalfHour]
    endings: list[Ending]


def figures_of_the_day(*, organization_id: UUID, newest: int, now: datetime) -> Day:
    """`newest` is the number of the organization's newest job."""
    begins = now - timedelta(seconds=BUCKETS * BUCKET_SECONDS)
    rows = _rows(organization_id, newest, begins)
    moves = {
        int(bucket): (came, departed, median, longest)
        for kind, bucket, came, departed, _, median, longest in rows
        if kind == "queue"
    }
    endings = [Ending(*row[1:]) for row in rows if row[0] == "ending"]
    return Day(_half_hours(moves, begins), endings)


def _half_hours(moves: dict[int, tuple[Any, ...]], begins: datetime) -> list[HalfHour]:
    came, departed, _, _ = moves.get(-1, NOTHING)
    depth, day = max(0, came - departed), []
    for bucket in range(BUCKETS):
        came, departed, median, longest = moves.get(bucket, NOTHING)
        after = max(0, depth + came - departed)
        at = begins + timedelta(seconds=bucket * BUCKET_SECONDS)
        day.append(HalfHour(at, max(depth, after), median, longest))
        depth = after
    return day


def _rows(organization_id: UUID, newest: int, begins: datetime) -> list[tuple[Any, ...]]:
    values: dict[str, Any] = {
        "organization": organization_id,
        "newest": newest,
        "looked_at": LOOKED_AT,
        "from": begins,
        "bucket": BUCKET_SECONDS,
    }
    with connection.cursor() as cursor:
        cursor.execute(FIGURES, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
