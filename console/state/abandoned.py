"""Abandoned locks: of attempts that are over while their lock is not."""

import logging
from uuid import UUID

from console.errors import SlipwayError
from console.jobs.intent import as_refresh_only
from console.jobs.models import Attempt, Job, JobClaim
from console.jobs.services import request_job
from console.state.locks import attempt_of, release_abandoned
from console.state.models import StateLock, StateVersion
from runner.protocol import JobType

logger = logging.getLogger("slipway.state")


def recover_from_loss(claim_id: UUID) -> None:
    """Release what a lost attempt holds where that is safe, and plan where it may have changed something."""
    attempt = (
        Attempt.objects.select_related("job__spec__organization", "runner").filter(claim_id=claim_id).first()
    )
    if attempt is None or attempt.job.spec is None:
        return
    release_abandoned_locks()
    if attempt.job.is_final and has_interrupted_an_apply(attempt):
        queue_refresh_only_plan(attempt.job)


def release_abandoned_locks() -> int:
    """Release the locks of attempts that are over and have changed nothing. The janitor looks every second.

    A lock that an interrupted apply left stays: infrastructure may have changed, and a person decides.
    """
    released = 0
    for lock in abandoned_locks():
        attempt = attempt_of(lock)
        because = changed_nothing(attempt) if attempt else "Its attempt is not on record."
        if because is not None and release_abandoned(lock=lock, because=because):
            logger.info("released the lock on the state of %s: %s", lock.spec, because)
            released += 1
    return released


def abandoned_locks() -> list[StateLock]:
    """The locks whose attempt no longer holds its job: nothing it sends is taken any more."""
    alive = JobClaim.objects.values("claim_id")
    locks = StateLock.objects.filter(claim_id__isnull=False).exclude(claim_id__in=alive)
    return list(locks.select_related("spec__organization", "job"))


def changed_nothing(attempt: Attempt) -> str | None:
    """Explain why the attempt changed no infrastructure; None when it may have."""
    if attempt.started_at is None:
        return f"{attempt.job} was lost before it began: nothing ran."
    if not attempt.job.kind.changes_infrastructure:
        return f"{attempt.job} only reads: it has ended and changed nothing."
    return None


def has_interrupted_an_apply(attempt: Attempt) -> bool:
    """Tell whether Terraform was at work on the infrastructure: it had the lock, or has saved something."""
    if not attempt.job.kind.changes_infrastructure or attempt.started_at is None:
        return False
    kept_here = attempt.job.config_snapshot.get("backend", {}).get("kind", "console") == "console"
    traces: tuple[type[StateLock] | type[StateVersion], ...] = (StateLock, StateVersion)
    # Of a state that is kept elsewhere nothing is known here.
    return not kept_here or any(kind.objects.filter(claim_id=attempt.claim_id).exists() for kind in traces)


def queue_refresh_only_plan(interrupted: Job) -> Job | None:
    """See what an interrupted apply has left: a plan that only compares the state with what is there."""
    if interrupted.spec is None:
        return None
    try:
        return request_job(
            spec=interrupted.spec,
            type=JobType.PLAN,
            requested_by=None,
            snapshot=as_refresh_only(interrupted.config_snapshot),
            revision=interrupted.revision,
        )
    except SlipwayError as error:
        # Somebody was quicker, or nothing is queued now: a person can plan as soon as that is over.
        logger.info("no refresh-only plan after %s of %s: %s", interrupted, interrupted.spec, error)
        return None
