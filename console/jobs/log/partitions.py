"""Log retention: chunks live in weekly partitions, and whole partitions are dropped."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction

WEEK = timedelta(days=7)
#: Partitions are made this far ahead, so that a janitor that is away for a while does no harm.
WEEKS_AHEAD = 4

EXISTING = """
SELECT child.relname FROM pg_inherits
JOIN pg_class parent ON parent.oid = inhparent
JOIN pg_class child ON child.oid = inhrelid
WHERE parent.relname = 'jobs_logchunk'
"""

MOVE = """
WITH moved AS (
    DELETE FROM jobs_logchunk_default WHERE created_at >= %(from)s AND created_at < %(to)s RETURNING *
)
INSERT INTO {name} SELECT * FROM moved
"""

ATTACH = "ALTER TABLE jobs_logchunk ATTACH PARTITION {name} FOR VALUES FROM ('{week}') TO ('{next_week}')"


def keep_partitions() -> None:
    """Create the partitions of the next weeks, and drop those past their retention."""
    this_week = week_of(datetime.now(UTC).date())
    coming = {
        partition(this_week + WEEK * offset): this_week + WEEK * offset for offset in range(WEEKS_AHEAD + 1)
    }
    kept_from = partition(
        week_of(datetime.now(UTC).date() - timedelta(days=settings.SLIPWAY_LOG_RETENTION_DAYS))
    )
    with connection.cursor() as cursor:
        cursor.execute(EXISTING)
        existing = {name for (name,) in cursor.fetchall()}
        for name in coming.keys() - existing:
            _add_partition(cursor, coming[name])
        for name in existing:
            if name < kept_from and name.startswith("jobs_logchunk_2"):
                cursor.execute(f"DROP TABLE IF EXISTS {name}")


def _add_partition(cursor: Any, week: date) -> None:
    """Create a week's partition, and move its rows into it from the default partition."""
    name = partition(week)
    with transaction.atomic():
        cursor.execute("LOCK TABLE jobs_logchunk_default IN ACCESS EXCLUSIVE MODE")
        cursor.execute("SELECT to_regclass(%s)", [name])
        if cursor.fetchone()[0] is not None:
            return  # another janitor has just made it
        cursor.execute(f"CREATE TABLE {name} (LIKE jobs_logchunk INCLUDING ALL)")
        cursor.execute(MOVE.format(name=name), {"from": week, "to": week + WEEK})
        cursor.execute(ATTACH.format(name=name, week=week, next_week=week + WEEK))


def week_of(day: date) -> date:
    return day - timedelta(days=day.weekday())


def partition(week: date) -> str:
    return f"jobs_logchunk_{week:%Y%m%d}"


def create_statement(week: date) -> str:
    return (
        f"CREATE TABLE IF NOT EXISTS {partition(week)} PARTITION OF jobs_logchunk "
        f"FOR VALUES FROM ('{week}') TO ('{week + WEEK}')"
    )
