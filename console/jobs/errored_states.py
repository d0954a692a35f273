"""States that Terraform could not save and the runner could not push: kept with the job, sealed."""

import hashlib
import json
from uuid import UUID

from console.accounts.models import User
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import InvalidMessage, NotFound, StaleClaim, TooLarge
from console.jobs.models import Attempt, ErroredState, Job
from console.jobs.queue import Held
from console.live import topics
from console.live.publish import publish_on_commit
from console.vault import seal, unseal

#: As much as the state itself may have.
MAX_BYTES = 100 * 1024 * 1024


def keep_errored_state(*, held: Held, body: bytes) -> ErroredState:
    """Keep it, from the runner that made the attempt, even when its claim is gone: it changes no job.

    Terraform could not save this state *because* the attempt had lost its hold, as often as not.
    """
    _require_state(body)
    attempt = (
        Attempt.objects.filter(pk=held.claim_id, job_id=held.job_id, runner_id=held.runner_id)
        .select_related("job__organization")
        .first()
    )
    if attempt is None:
        raise StaleClaim("This runner has made no such attempt. Keep the file, and ask a person.")
    kept, created = ErroredState.objects.get_or_create(
        attempt=attempt,
        defaults={
            "sealed_body": seal(body, context=_context(held.claim_id)),
            "size_bytes": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
        },
    )
    if created:
        _tell(attempt)
    return kept


def errored_states_of(job: Job) -> list[ErroredState]:
    kept = ErroredState.objects.filter(attempt__job=job).defer("sealed_body")
    return list(kept.select_related("attempt__runner").order_by("attempt__number"))


def open_errored_state(*, job: Job, claim_id: UUID, opened_by: User) -> bytes:
    """The state itself. It holds secrets, so the audit record says who took it."""
    kept = ErroredState.objects.filter(attempt__job=job, pk=claim_id).select_related("attempt").first()
    if kept is None:
        raise NotFound("This attempt left no state behind.")
    record(
        organization=job.organization,
        actor=opened_by,
        action=AuditAction.JOB_ERRORED_STATE_DOWNLOADED,
        target=job,
        attempt=kept.attempt.number,
    )
    return unseal(kept.sealed_body, context=_context(claim_id))


def _tell(attempt: Attempt) -> None:
    record(
        organization=attempt.job.organization,
        actor=None,
        action=AuditAction.JOB_ERRORED_STATE_KEPT,
        target=attempt.job,
        attempt=attempt.number,
    )
    publish_on_commit(topics.job(attempt.job_id))


def _context(claim_id: UUID) -> str:
    return f"errored-state:{claim_id}"


def _require_state(body: bytes) -> None:
    if len(body) > MAX_BYTES:
        raise TooLarge(f"A state has at most {MAX_BYTES} bytes here. Keep the file, and push it by hand.")
    try:
        document = json.loads(body)
    except ValueError as error:
        raise InvalidMessage(f"The body is not Terraform state: {error}") from error
    if not isinstance(document, dict) or "lineage" not in document or "serial" not in document:
        raise InvalidMessage("The body is not Terraform state: it has no serial and lineage.")
