"""All hand-written SQL of the queue: one described statement for each thing that must be atomic.

Every statement is complete in itself, so the hot paths need neither a transaction nor a savepoint.
Only the database's clock decides leases, timeouts and order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from console.audit.actions import AuditAction
from console.ids import new_id
from console.jobs.lifecycle import MOVES, PROCESSING, Ending, is_final, sources
from console.prepared_statements import fetch_one


@dataclass(frozen=True, slots=True)
class Held:
    """The claim that a runner says it holds. All of it is checked: a claim is of no use to another runner.

    `credential` is the digest of the runner's credential where this request has not verified it yet: then the
    statement does, by `VERIFIED`. See `console/runners/recognition.py`.
    """

    job_id: UUID
    claim_id: UUID
    runner_id: UUID
    credential: str | None = None

    def values(self) -> dict[str, Any]:
        return {
            "job": self.job_id,
            "claim": self.claim_id,
            "runner": self.runner_id,
            "credential": self.credential,
        }


#: The runner's credential still stands; or it was verified before, and there is none to verify.
VERIFIED = """(%(credential)s::text IS NULL OR EXISTS (
    SELECT FROM runners_runnercredential AS shown
    WHERE shown.credential_sha256 = %(credential)s AND shown.runner_id = %(runner)s
      AND shown.revoked_at IS NULL AND (shown.expires_at IS NULL OR shown.expires_at > now())))"""


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change, for the audit log."""

    kind: str
    id: UUID | None
    name: str


def _array(values: Iterable[object]) -> str:
    """Words and ids as PostgreSQL writes an array: much cheaper than having each list adapted."""
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: object) -> str:
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


# ── enqueue ──────────────────────────────────────────────────────────────────────────────────────

#: Queue a job under its organization's next number, unless the organization or the installation drains.
#: The organization's row stays locked until the job is committed, so that numbers have no gaps.
ENQUEUE = f"""
WITH numbered AS (
    UPDATE accounts_organization
    SET last_job_number = last_job_number + 1
    WHERE id = %(organization)s AND draining_since IS NULL
      AND NOT EXISTS (SELECT FROM accounts_installation WHERE draining_since IS NOT NULL)
    RETURNING last_job_number
),
queued AS (
    INSERT INTO jobs_job
        (id, organization_id, number, type, status, spec_id, identity_id, plan_id, pool_id, priority,
         revision, config_snapshot, snapshot_hash, requested_by_id, retry_of_id, idempotency_key,
         request_sha256, max_retries, retry_count, timeout_seconds, attempt_count, cancel_reason, error_code,
         error_message, log_next_seq, log_bytes)
    SELECT %(id)s, %(organization)s, last_job_number, %(type)s, 'QUEUED',
           %(spec)s::uuid, %(identity)s::uuid, %(plan)s::uuid, %(pool)s, 0,
           %(revision)s::int, %(snapshot)s::jsonb, %(hash)s, %(person)s::uuid, %(retry_of)s::uuid, %(key)s,
           %(request)s, %(max_retries)s, 0, %(timeout)s, 0, '', '', '', 1, 0
    FROM numbered
    RETURNING id, number, created_at, run_after
),
audited AS (
    INSERT INTO audit_auditevent
        (id, organization_id, actor_kind, actor_id, actor_name, action, target_kind, target_id, data)
    SELECT %(event)s, %(organization)s, %(actor_kind)s, %(person)s::uuid, %(actor_name)s,
           '{AuditAction.JOB_REQUESTED}', 'job', id, %(data)s::jsonb
    FROM queued
)
SELECT number, created_at, run_after FROM queued
"""  # noqa: S608 - of constants


@dataclass(frozen=True, slots=True)
class Queued:
    """The columns of a new job that the database sets."""

    number: int
    created_at: datetime
    run_after: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job as it is requested: of a Spec, or of a cloud identity."""

    organization_id: UUID
    type: str
    pool_id: UUID
    config_snapshot: dict[str, Any]
    snapshot_hash: str
    max_retries: int
    timeout_seconds: int
    spec_id: UUID | None = None
    identity_id: UUID | None = None
    plan_id: UUID | None = None
    revision: int | None = None
    retry_of_id: UUID | None = None
    idempotency_key: str | None = None
    request_sha256: str = ""
    id: UUID = field(default_factory=new_id)


def enqueue(*, job: NewJob, actor: Actor) -> Queued | None:
    """Return the number and the times of the new job; None while submissions are drained."""
    row = fetch_one(
        ENQUEUE,
        {
            "id": job.id,
            "organization": job.organization_id,
            "type": job.type,
            "spec": job.spec_id,
            "identity": job.identity_id,
            "plan": job.plan_id,
            "pool": job.pool_id,
            "revision": job.revision,
            "snapshot": json.dumps(job.config_snapshot),
            "hash": job.snapshot_hash,
            "person": actor.id,
            "retry_of": job.retry_of_id,
            "key": job.idempotency_key,
            "request": job.request_sha256,
            "max_retries": job.max_retries,
            "timeout": job.timeout_seconds,
            "event": new_id(),
            "actor_kind": actor.kind,
            "actor_name": actor.name,
            "data": json.dumps(_audit_data(job)),
        },
    )
    return Queued(*row) if row else None


def _audit_data(job: NewJob) -> dict[str, str]:
    return {"type": job.type} | ({"identity": str(job.identity_id)} if job.identity_id else {})


IS_ARCHIVED = "SELECT archived_at IS NOT NULL FROM specs_spec WHERE id = %(spec)s"


def is_archived(*, spec_id: UUID) -> bool:
    """Return whether a Spec accepts no more jobs. Call it after the enqueue: an archiving waits for that."""
    row = fetch_one(IS_ARCHIVED, {"spec": spec_id})
    return bool(row and row[0])


# ── claim ────────────────────────────────────────────────────────────────────────────────────────

#: Hand the oldest claimable job of the runner's pools to the runner: flip it, open its attempt and
#: its lease, and return what the answer says of it. A repeat with the same claim key returns the same
#: claim. Nothing is handed out while the organization, the installation or the runner itself drains.
#:
#: The subquery locks at most one row in each of the runner's pools; the rows that are not taken are
#: free again when the statement ends.
#:
#: The commit does not wait for the disk: of a claim that a crash of the server forgets nothing has begun, and
#: its runner is refused at its first heartbeat. The commit of the start waits, for both.
CLAIM = f"""
WITH repeated AS (
    SELECT claim_id, job.*
    FROM jobs_jobclaim JOIN jobs_job AS job ON job.id = job_id
    WHERE runner_id = %(runner)s AND claim_key = %(key)s AND {VERIFIED}
),
picked AS (
    SELECT candidate.id
    FROM unnest(%(pools)s::text::uuid[]) AS pool(id)
    CROSS JOIN LATERAL (
        SELECT id, priority FROM jobs_job
        WHERE pool_id = pool.id AND status = 'QUEUED' AND run_after <= now()
          AND type = ANY(%(types)s::text::text[])
        ORDER BY priority DESC, id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS candidate
    WHERE {VERIFIED}
      AND EXISTS (SELECT FROM runners_runner_pools WHERE runner_id = %(runner)s AND pool_id = pool.id)
      AND NOT EXISTS (SELECT FROM repeated)
      AND NOT EXISTS (SELECT FROM accounts_installation WHERE draining_since IS NOT NULL)
      AND NOT EXISTS (
          SELECT FROM accounts_organization WHERE id = %(organization)s AND draining_since IS NOT NULL)
      AND NOT EXISTS (SELECT FROM runners_runner WHERE id = %(runner)s AND draining_since IS NOT NULL)
    ORDER BY candidate.priority DESC, candidate.id
    LIMIT 1
),
claimed AS (
    UPDATE jobs_job
    SET status = 'CLAIMED', claimed_at = now(), attempt_count = attempt_count + 1
    FROM picked
    WHERE jobs_job.id = picked.id
    RETURNING %(claim)s::uuid AS claim_id, jobs_job.*
),
attempted AS (
    INSERT INTO jobs_attempt (claim_id, job_id, number, runner_id, claimed_at, first_log_seq)
    SELECT claim_id, id, attempt_count, %(runner)s, now(), log_next_seq FROM claimed
),
leased AS (
    INSERT INTO jobs_jobclaim
        (job_id, claim_id, claim_key, runner_id, expires_at, heartbeat_at, log_next_seq, log_bytes)
    SELECT id, claim_id, %(key)s, %(runner)s, now() + make_interval(secs => %(lease)s), now(),
           log_next_seq, log_bytes
    FROM claimed
),
audited AS (
    INSERT INTO audit_auditevent
        (id, organization_id, actor_kind, actor_id, actor_name, action, target_kind, target_id, data)
    SELECT %(event)s, claimed.organization_id, 'runner', runner.id, runner.name,
           '{AuditAction.JOB_CLAIMED}', 'job', claimed.id, jsonb_build_object('claim_id', claimed.claim_id)
    FROM claimed JOIN runners_runner AS runner ON runner.id = %(runner)s
)
SELECT held.id, held.claim_id, held.organization_id, held.number, held.type, held.spec_id, held.plan_id,
       held.attempt_count, held.timeout_seconds, held.log_next_seq, held.snapshot_hash,
       held.config_snapshot::text, organization.slug, spec.slug,
       set_config('synchronous_commit', 'off', true)
FROM (SELECT * FROM claimed UNION ALL SELECT * FROM repeated) AS held
JOIN accounts_organization AS organization ON organization.id = held.organization_id
LEFT JOIN specs_spec AS spec ON spec.id = held.spec_id
"""  # noqa: S608 - of constants


@dataclass(frozen=True, slots=True)
class Claimed:
    """The job that a runner now holds, its claim, and the columns that the answer needs."""

    id: UUID
    claim_id: UUID
    organization_id: UUID
    number: int
    type: str
    spec_id: UUID | None
    plan_id: UUID | None
    attempt_count: int
    timeout_seconds: int
    log_next_seq: int
    snapshot_hash: str
    #: As text: most of a claim is its snapshot, and only one reader needs it decoded.
    config_snapshot: str
    organization: str
    spec: str | None


def claim(
    *,
    runner_id: UUID,
    organization_id: UUID,
    pool_ids: list[UUID],
    types: list[str],
    claim_key: UUID,
    lease_seconds: int,
    credential: str | None = None,
) -> Claimed | None:
    """Return the claim that the runner now holds, or None."""
    row = fetch_one(
        CLAIM,
        {
            "runner": runner_id,
            "organization": organization_id,
            "pools": _array(pool_ids),
            "types": _array(types),
            "key": claim_key,
            "credential": credential,
            "claim": new_id(),
            "event": new_id(),
            "lease": lease_seconds,
        },
    )
    return Claimed(*row[:-1]) if row else None


# ── start ────────────────────────────────────────────────────────────────────────────────────────

#: The attempt begins its work. Zero rows: the claim is gone, the job is not CLAIMED, or its type is excepted.
#: While this waits for the job's row, the job may be taken back and claimed again: of the tables that are
#: read here only the job is read anew then, so it is the job that must name the attempt.
START = f"""
WITH started AS (
    UPDATE jobs_job
    SET status = 'PROCESSING', started_at = now()
    FROM jobs_jobclaim AS held JOIN jobs_attempt AS attempt USING (claim_id)
    WHERE jobs_job.id = %(job)s AND jobs_job.status = 'CLAIMED'
      AND jobs_job.type <> ALL(%(except)s::text::text[])
      AND held.job_id = %(job)s AND held.claim_id = %(claim)s AND held.runner_id = %(runner)s
      AND jobs_job.attempt_count = attempt.number AND {VERIFIED}
    RETURNING jobs_job.organization_id
),
audited AS (
    INSERT INTO audit_auditevent
        (id, organization_id, actor_kind, actor_id, actor_name, action, target_kind, target_id, data)
    SELECT %(event)s, started.organization_id, 'runner', runner.id, runner.name,
           '{AuditAction.JOB_STARTED}', 'job', %(job)s,
           jsonb_build_object('claim_id', %(claim)s::uuid)
    FROM started JOIN runners_runner AS runner ON runner.id = %(runner)s
)
UPDATE jobs_attempt SET started_at = now() FROM started WHERE claim_id = %(claim)s
RETURNING started.organization_id
"""  # noqa: S608 - of constants


def start(*, held: Held, except_types: Sequence[str] = ()) -> UUID | None:
    """Return the organization of the job that is now PROCESSING, or None when it did not start."""
    row = fetch_one(START, {**held.values(), "except": _array(except_types), "event": new_id()})
    return row[0] if row else None


# ── heartbeat ────────────────────────────────────────────────────────────────────────────────────

#: Renew the lease; reads, but never writes, the job. A lease that ran out but was not taken back yet
#: is still the runner's: only the deletion of the row hands the job on. Nor does its commit wait for the
#: disk: a renewal that is forgotten is one that was late.
HEARTBEAT = f"""
UPDATE jobs_jobclaim AS held
SET heartbeat_at = now(), expires_at = now() + make_interval(secs => %(lease)s)
FROM jobs_job AS job, runners_runner AS runner, accounts_organization AS organization
WHERE held.job_id = %(job)s AND held.claim_id = %(claim)s AND held.runner_id = %(runner)s
  AND job.id = held.job_id AND runner.id = held.runner_id AND organization.id = job.organization_id
  AND {VERIFIED}
RETURNING
    CASE WHEN job.cancel_requested_at IS NOT NULL THEN job.cancel_reason END,
    runner.draining_since IS NOT NULL OR organization.draining_since IS NOT NULL
        OR EXISTS (SELECT FROM accounts_installation WHERE draining_since IS NOT NULL),
    set_config('synchronous_commit', 'off', true)
"""  # noqa: S608 - of constants


def heartbeat(*, held: Held, lease_seconds: int) -> tuple[str | None, bool] | None:
    """Return the reason to stop (or None) and whether to drain; only None when the claim is gone."""
    row = fetch_one(HEARTBEAT, {**held.values(), "lease": lease_seconds})
    return (row[0], row[1]) if row else None


# ── the end of an attempt ────────────────────────────────────────────────────────────────────────

#: End an attempt and move its job, whoever ends it: the runner's report, a lost lease, a timeout, a
#: forced cancel. Deleting the claim is what decides; whoever deletes it writes the ending, and there
#: is nothing left for anyone else to delete. A runner ends what it holds itself, and nothing else.
#:
#: The job is locked before it is read: a start that is being committed is waited for, and seen; so is a
#: cancel, after which the job is not queued again.
END = f"""
WITH ended AS (
    DELETE FROM jobs_jobclaim AS held
    USING (
        SELECT job.id FROM jobs_job AS job JOIN jobs_jobclaim ON job_id = job.id
        WHERE claim_id = %(claim)s AND job.status = ANY(%(sources)s::text::text[])
          AND job.type <> ALL(%(except)s::text::text[])
          AND NOT (%(requeues)s AND job.cancel_requested_at IS NOT NULL)
        FOR UPDATE OF job
    ) AS locked
    WHERE held.job_id = locked.id AND held.claim_id = %(claim)s
      AND (%(runner)s::uuid IS NULL OR (held.runner_id = %(runner)s AND held.job_id = %(job)s AND {VERIFIED}))
      AND (%(silent)s::float IS NULL OR held.expires_at < now()
           OR GREATEST(held.heartbeat_at, held.log_at) < now() - make_interval(secs => %(silent)s))
    RETURNING held.job_id, held.log_next_seq, held.log_bytes, held.log_chain
),
moved AS (
    UPDATE jobs_job
    SET status = %(status)s,
        finished_at = CASE WHEN %(final)s THEN now() END,
        run_after = now() + make_interval(secs => %(delay)s),
        retry_count = retry_count + %(retries)s,
        claimed_at = CASE WHEN %(final)s THEN claimed_at END,
        started_at = CASE WHEN %(final)s THEN started_at END,
        result = %(result)s::jsonb,
        error_code = %(error_code)s,
        error_message = %(error_message)s,
        log_next_seq = ended.log_next_seq,
        log_bytes = ended.log_bytes
    FROM ended
    WHERE jobs_job.id = ended.job_id
    RETURNING jobs_job.id, jobs_job.status, jobs_job.organization_id, jobs_job.pool_id
),
recorded AS (
    UPDATE jobs_attempt
    SET ended_at = now(), outcome = %(outcome)s, orphaned = %(orphaned)s, exit_reason = %(reason)s,
        log_next_seq = ended.log_next_seq, log_chain = ended.log_chain,
        reported_log_next_seq = %(reported_seq)s, reported_log_chain = %(reported_chain)s,
        report_sha256 = %(report)s
    FROM ended
    WHERE jobs_attempt.claim_id = %(claim)s
),
audited AS (
    INSERT INTO audit_auditevent
        (id, organization_id, actor_kind, actor_id, actor_name, action, target_kind, target_id, data)
    SELECT %(event)s, moved.organization_id, %(actor_kind)s, %(actor_id)s::uuid, %(actor_name)s, %(action)s,
           'job', moved.id, %(data)s::jsonb
    FROM moved
)
SELECT id, status, organization_id, pool_id FROM moved
"""  # noqa: S608 - of constants


#: The audit action of each move that ends an attempt.
END_ACTIONS: Final = {
    "succeed": AuditAction.JOB_SUCCEEDED,
    "fail": AuditAction.JOB_FAILED,
    "cancel": AuditAction.JOB_CANCELLED,
    "requeue": AuditAction.JOB_REQUEUED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """The end of one attempt, for its own row; the `Ending` says what it does to the job."""

    outcome: str
    reason: str
    orphaned: bool = False
    result: dict[str, Any] | None = None
    report_sha256: str = ""
    reported_log_next_seq: int | None = None
    reported_log_chain: str = ""


@dataclass(frozen=True, slots=True)
class Moved:
    job_id: UUID
    status: str
    organization_id: UUID
    pool_id: UUID


def end_attempt(
    *,
    claim_id: UUID,
    ending: Ending,
    attempt: AttemptEnd,
    actor: Actor,
    held: Held | None = None,
    seen_status: str | None = None,
    except_types: Sequence[str] = (),
    retry_delay_seconds: float = 0.0,
    only_lost_after_seconds: float | None = None,
) -> Moved | None:
    """Carry the ending out, or return None when the claim is gone or the move is not allowed.

    With `only_lost_after_seconds`, also return None while the lease runs and the attempt was heard of that
    recently.
    """
    allowed = sources(ending.move) if seen_status is None else [seen_status]
    status = MOVES[ending.move][PROCESSING]
    row = fetch_one(
        END,
        {
            "claim": claim_id,
            "job": held.job_id if held else None,
            "runner": held.runner_id if held else None,
            "credential": held.credential if held else None,
            "sources": _array(source for source in allowed if source in sources(ending.move)),
            "except": _array(except_types),
            "silent": only_lost_after_seconds,
            "requeues": ending.requeues,
            "status": status.value,
            "final": is_final(status),
            "delay": retry_delay_seconds,
            "retries": int(ending.costs_retry),
            "result": json.dumps(attempt.result) if attempt.result is not None else None,
            "error_code": ending.error_code or "",
            "error_message": ending.error_message or "",
            "outcome": attempt.outcome,
            "orphaned": attempt.orphaned,
            "reason": attempt.reason,
            "reported_seq": attempt.reported_log_next_seq,
            "reported_chain": attempt.reported_log_chain,
            "report": attempt.report_sha256,
            "event": new_id(),
            "actor_kind": actor.kind,
            "actor_id": actor.id,
            "actor_name": actor.name,
            "action": END_ACTIONS[ending.move].value,
            "data": json.dumps({"claim_id": str(claim_id), "outcome": attempt.outcome}),
        },
    )
    return Moved(*row) if row else None


# ── the cancel of a queued job ───────────────────────────────────────────────────────────────────

#: A queued job has neither claim nor attempt, so a person's cancel ends it at once. Zero rows: it is no
#: longer queued.
CANCEL_QUEUED = """
UPDATE jobs_job
SET status = 'CANCELLED', finished_at = statement_timestamp(), cancel_requested_at = statement_timestamp(),
    cancel_reason = 'person', cancelled_by_id = %(person)s, error_code = %(error_code)s,
    error_message = %(error_message)s
WHERE id = %(job)s AND status = 'QUEUED'
RETURNING id, status, organization_id, pool_id
"""


def cancel_queued(*, job_id: UUID, person_id: UUID, error_code: str, error_message: str) -> Moved | None:
    row = fetch_one(
        CANCEL_QUEUED,
        {"job": job_id, "person": person_id, "error_code": error_code, "error_message": error_message},
    )
    return Moved(*row) if row else None


# ── log ──────────────────────────────────────────────────────────────────────────────────────────

#: Append one batch if it begins exactly where the log ends and the claim still stands.
APPEND_LOG = f"""
WITH advanced AS (
    UPDATE jobs_jobclaim
    SET log_next_seq = log_next_seq + %(count)s,
        log_bytes = log_bytes + %(bytes)s,
        log_chain = CASE WHEN %(digest)s::bytea IS NULL THEN log_chain
                         ELSE encode(sha256(decode(log_chain, 'hex') || %(digest)s), 'hex') END,
        log_at = now()
    WHERE job_id = %(job)s AND claim_id = %(claim)s AND runner_id = %(runner)s
      AND log_next_seq = %(first)s AND log_bytes <= %(limit)s AND {VERIFIED}
    RETURNING job_id, log_bytes
),
stored AS (
    INSERT INTO jobs_logchunk (job_id, first_seq, created_at, line_count, level_mask, lines)
    SELECT job_id, %(first)s, now(), %(count)s, %(levels)s, %(lines)s FROM advanced
)
SELECT log_bytes FROM advanced
"""  # noqa: S608 - of constants

LOG_POSITION = """
SELECT log_next_seq, log_bytes FROM jobs_jobclaim
WHERE job_id = %(job)s AND claim_id = %(claim)s AND runner_id = %(runner)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    first_seq: int
    line_count: int
    level_mask: int
    lines: str
    #: None for the console's own line, which is no part of the runner's chain.
    digest: bytes | None

    @property
    def size_bytes(self) -> int:
        """The size in storage, in UTF-8; most logs are ASCII, whose length is their size."""
        return len(self.lines) if self.lines.isascii() else len(self.lines.encode())


def append_log(*, held: Held, batch: Batch, limit_bytes: int) -> int | None:
    """Return the log's size after the batch, or None when it was not appended: `log_position` says why."""
    row = fetch_one(
        APPEND_LOG,
        {
            **held.values(),
            "first": batch.first_seq,
            "count": batch.line_count,
            "bytes": batch.size_bytes,
            "digest": batch.digest,
            "levels": batch.level_mask,
            "lines": batch.lines,
            "limit": limit_bytes,
        },
    )
    return row[0] if row else None


def log_position(*, held: Held) -> tuple[int, int] | None:
    """Return the number of the attempt's next log line and the log's size; None when the claim is gone."""
    row = fetch_one(LOG_POSITION, held.values())
    return (row[0], row[1]) if row else None
