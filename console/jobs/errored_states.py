"""States that Terraform could not save and the runner could not push: stored with the job, sealed."""

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

#: The limit of a state that is saved the usual way.
MAX_BYTES = 100 * 1024 * 1024


def keep_errored_state(*, held: Held, body: bytes) -> ErroredState:
    """Store the state from the runner that made the attempt, even when its claim is gone: it changes no job.

    As often as not, Terraform could not save this state *because* the attempt had lost its claim.
    """
    _require_state(body)
    attempt = (
        Attempt.objects.filter(pk=held.claim_id, job_id=held.job_id, runner_id=held.runner_id)
        .select_related("job__organization")
        .first()
    )
    if attempt is None:
        raise StaleClaim("This runner has made no such attempt. Keep the file, and contact an operator.")
    errored_state, created = ErroredState.objects.get_or_create(
        attempt=attempt,
        defaults={
            "sealed_body": seal(body, context=errored_state_context(held.claim_id)),
            "size_bytes": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
        },
    )
    if created:
        _record_upload(attempt)
    return errored_state


def errored_states_of(job: Job) -> list[ErroredState]:
    errored_states = ErroredState.objects.filter(attempt__job=job).defer("sealed_body")
    return list(errored_states.select_related("attempt__runner").order_by("attempt__number"))


def open_errored_state(*, job: Job, claim_id: UUID, opened_by: User) -> bytes:
    """Open the state. It holds secrets, so the audit log says who downloaded it."""
    errored_state = (
        ErroredState.objects.filter(attempt__job=job, pk=claim_id).select_related("attempt").first()
    )
    if errored_state is None:
        raise NotFound("This attempt left no errored state.")
    record(
        organization=job.organization,
        actor=opened_by,
        action=AuditAction.JOB_ERRORED_STATE_DOWNLOADED,
        target=job,
        attempt=errored_state.attempt.number,
    )
    return unseal(errored_state.sealed_body, context=errored_state_context(claim_id))


def _record_upload(attempt: Attempt) -> None:
    record(
        organization=attempt.job.organization,
        actor=None,
        action=AuditAction.JOB_ERRORED_STATE_KEPT,
        target=attempt.job,
        attempt=attempt.number,
    )
    publish_on_commit(topics.job(attempt.job_id))


def errored_state_context(claim_id: UUID) -> str:
    return f"errored-state:{claim_id}"


def _require_state(body: bytes) -> None:
    if len(body) > MAX_BYTES:
        raise TooLarge(f"The state is larger than {MAX_BYTES} bytes. Keep the file, and push it by hand.")
    try:
        document = json.loads(body)
    except ValueError as error:
        raise InvalidMessage(f"The body is not Terraform state: {error}") from error
    if not isinstance(document, dict) or "lineage" not in document or "serial" not in document:
        raise InvalidMessage("The body is not Terraform state: it has no serial and lineage.")
