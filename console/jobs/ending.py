"""The one end of a job: every final status is written here, together with the hooks that hear of it.

A runner's report, a refusal at the claim, a lost lease, a timeout, a cancel and a forced cancel all come
through `end` or `cancel_queued`. Both run the `on_end` hooks in the transaction of the ending, so that they
happen with it or not at all, and announce the job once.
"""

from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction

from console.accounts.models import User
from console.jobs import hooks, queue
from console.jobs.announce import announce
from console.jobs.lifecycle import CANCELLED_BY_PERSON, MOVES, PROCESSING, QUEUED, Ending, is_final
from console.jobs.models import Job
from console.runners.recognition import require_verified


def end(
    *,
    claim_id: UUID,
    ending: Ending,
    attempt: queue.AttemptEnd,
    actor: queue.Actor,
    held: queue.Held | None = None,
    seen_status: str | None = None,
    retry_delay_seconds: float = 0.0,
    only_lost_after_seconds: float | None = None,
    sensitive_outputs: dict[str, Any] | None = None,
) -> queue.Moved | None:
    """End an attempt and move its job; None when the claim is gone or the move is not allowed.

    This is one statement, unless a hook is registered for this ending of the job's type. With `held`, the
    statement verifies the runner's credential; several statements need it verified before.
    """
    statement = partial(
        queue.end_attempt,
        claim_id=claim_id,
        ending=ending,
        attempt=attempt,
        actor=actor,
        held=held,
        seen_status=seen_status,
        retry_delay_seconds=retry_delay_seconds,
        only_lost_after_seconds=only_lost_after_seconds,
    )
    types = _types_with_hooks(ending, attempt)
    moved = statement(except_types=types)
    if moved is None and types:
        require_verified(held.credential if held else None)
        with transaction.atomic():
            moved = statement()
            if moved is not None:
                _run_hooks(moved.job_id, sensitive_outputs or {})
    if moved is not None:
        _announce(moved)
        if attempt.orphaned:
            _run_loss_hooks(claim_id)
    return moved


def cancel_queued(*, job: Job, cancelled_by: User) -> queue.Moved | None:
    """Cancel a job that no runner has; None when it is not queued any more."""
    with transaction.atomic(savepoint=False):
        moved = queue.cancel_queued(
            job_id=job.pk,
            person_id=cancelled_by.pk,
            error_code=CANCELLED_BY_PERSON.error_code or "",
            error_message=f"Cancelled by {cancelled_by.get_username()} before it started.",
        )
        if moved is not None:
            _run_hooks(moved.job_id, {})
            _announce(moved)
    return moved


def _types_with_hooks(ending: Ending, attempt: queue.AttemptEnd) -> list[str]:
    status = MOVES[ending.move][PROCESSING]
    return hooks.types_with_end_hooks(status, attempt.result or {}) if is_final(status) else []


def _run_hooks(job_id: UUID, sensitive_outputs: dict[str, Any]) -> None:
    if not hooks.end_hooks:
        return
    job = Job.objects.defer("config_snapshot").get(pk=job_id)
    end = hooks.JobEnd(job, sensitive_outputs)
    for registered in hooks.end_hooks:
        if job.type in registered.types and registered.is_for(job.status, end.result):
            registered.hook(end)


def _announce(moved: queue.Moved) -> None:
    announce(
        job_id=moved.job_id,
        organization_id=moved.organization_id,
        queued_in=moved.pool_id if moved.status == QUEUED else None,
    )


def _run_loss_hooks(claim_id: UUID) -> None:
    for hook in hooks.on_attempt_lost:
        hook(claim_id)
