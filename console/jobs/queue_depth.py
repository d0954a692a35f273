"""The depth of each pool's queue, for autoscalers and alerts."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

#: One row per pool: jobs that a runner could start now, jobs under way, and how long the oldest has waited.
#: A job that is delayed for a retry, or drained, needs no runner, so it is not counted as queued.
DEPTH = """
SELECT organization.slug, pool.name,
       count(job.id) FILTER (WHERE job.status = 'QUEUED' AND job.run_after <= now()
                             AND organization.draining_since IS NULL AND installation.draining_since IS NULL),
       count(job.id) FILTER (WHERE job.status = 'QUEUED' AND job.run_after > now()),
       count(job.id) FILTER (WHERE job.status IN ('CLAIMED', 'PROCESSING')),
       COALESCE(EXTRACT(epoch FROM now() - min(job.run_after)
                        FILTER (WHERE job.status = 'QUEUED' AND job.run_after <= now())), 0)::float,
       (SELECT count(*) FROM runners_runner runner
        JOIN runners_runner_pools member ON member.runner_id = runner.id
        WHERE member.pool_id = pool.id AND runner.status = 'ONLINE')
FROM runners_pool pool
JOIN accounts_organization organization ON organization.id = pool.organization_id
CROSS JOIN (SELECT max(draining_since) AS draining_since FROM accounts_installation) AS installation
LEFT JOIN jobs_job job ON job.pool_id = pool.id AND job.status IN ('QUEUED', 'CLAIMED', 'PROCESSING')
WHERE %(organization)s::uuid IS NULL OR pool.organization_id = %(organization)s
GROUP BY organization.slug, pool.id, pool.name, organization.draining_since, installation.draining_since
ORDER BY organization.slug, pool.name
"""


@dataclass(frozen=True, slots=True)
class PoolDepth:
    organization: str
    pool: str
    queued: int
    delayed: int
    running: int
    oldest_wait_seconds: float
    runners_online: int


def pool_depths(*, organization_id: UUID | None = None) -> list[PoolDepth]:
    """Return the depth of every pool, or of one organization's pools."""
    with connection.cursor() as cursor:
        cursor.execute(DEPTH, {"organization": organization_id})
        return [PoolDepth(*row) for row in cursor.fetchall()]


OLDEST_TRANSACTION = """
SELECT COALESCE(EXTRACT(epoch FROM now() - min(xact_start)), 0)::float
FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()
"""


def oldest_transaction_seconds() -> float:
    """Return the age of the oldest transaction: it keeps dead rows, which slow every claim down."""
    with connection.cursor() as cursor:
        cursor.execute(OLDEST_TRANSACTION)
        row: Any = cursor.fetchone()
    return float(row[0])
