"""A person's actions on jobs: request, cancel, retry."""

import dataclasses
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.urls import reverse

from console.accounts.models import User
from console.audit.models import ActorKind
from console.audit.services import record
from console.errors import (
    BadInput,
    ConfirmationMismatch,
    Conflict,
    Draining,
    GateClosed,
    IdempotencyMismatch,
    JobActive,
    JobFinal,
    SpecArchived,
)
from console.jobs import hooks, intent, queue
from console.jobs.announce import announce
from console.jobs.ending import cancel_queued, end
from console.jobs.gates import require_gates_open
from console.jobs.lifecycle import ACTIVE_STATUSES, CANCELLED_BY_PERSON, QUEUED, is_final
from console.jobs.models import Job, Outcome
from console.jobs.types import kind_of
from runner.protocol import CancelReason, JobType
from specs.models import Revision, Spec
from specs.selectors import current_revision, revision_of
from specs.services import check_document, follow_git
from specs.snapshot import snapshot_hash, snapshot_of


def request_plan(
    *,
    spec: Spec,
    requested_by: User,
    destroy: bool = False,
    revision: int | None = None,
    idempotency_key: str | None = None,
) -> Job:
    """Queue a plan of the Spec as it is, of its destroy, or a speculative one of one of its revisions."""
    if revision is not None and destroy:
        raise BadInput(
            "A speculative plan of a revision cannot be a destroy plan: give either revision or destroy."
        )
    previewed = None if revision is None else revision_of(spec, revision)
    planned = previewed or follow_git(spec=spec, author=requested_by)
    return request_job(
        spec=spec,
        type=JobType.PLAN,
        requested_by=requested_by,
        snapshot=_snapshot_to_plan(spec, planned, destroy=destroy, speculative=previewed is not None),
        revision=planned.number,
        idempotency_key=idempotency_key,
    )


def request_destroy(
    *, spec: Spec, confirmation: str, requested_by: User, idempotency_key: str | None = None
) -> Job:
    """Queue the DESTROY of everything that the Spec manages, confirmed by its typed name."""
    if confirmation != spec.name:
        raise ConfirmationMismatch(
            f"The name does not match: type {spec.name!r} to confirm. Nothing was changed."
        )
    require_unprotected(spec)
    return request_job(
        spec=spec, type=JobType.DESTROY, requested_by=requested_by, idempotency_key=idempotency_key
    )


def request_job(
    *,
    spec: Spec,
    type: JobType,
    requested_by: User | None,
    snapshot: dict[str, Any] | None = None,
    revision: int | None = None,
    plan_id: UUID | None = None,
    retry_of: Job | None = None,
    idempotency_key: str | None = None,
    require: Callable[[], None] | None = None,
) -> Job:
    """Queue one job of a spec. A second active job of the spec is refused with the first one's URL.

    `require` refuses by raising. It is not called for the repeat of a request that was accepted.
    """
    if snapshot is None:
        newest = current_revision(spec)
        snapshot, revision = current_document(spec, newest), newest.number
    request_sha256 = _request_digest(
        spec=spec, type=type, plan_id=plan_id, retry_of=retry_of, plan_intent=intent.intent_of(snapshot)
    )
    first = _first_request(spec.organization_id, idempotency_key, request_sha256)
    if first is not None:
        return first
    if require is not None:
        require()
    require_requestable(spec, snapshot)
    require_gates_open(spec=spec, type=type)
    if plan_id is None and retry_of is None:
        check_document(snapshot)  # a missing value or a syntax error is refused before the job is queued
    try:
        with transaction.atomic():
            return _enqueue(
                spec=spec,
                type=type,
                document=snapshot,
                revision=revision,
                requested_by=requested_by,
                plan_id=plan_id,
                retry_of=retry_of,
                idempotency_key=idempotency_key,
                request_sha256=request_sha256,
            )
    except IntegrityError as error:
        # The index decides, not a check before: two clicks can race.
        return _explain_refusal(error, spec, idempotency_key, request_sha256)


def cancel_job(*, job: Job, requested_by: User, force: bool = False) -> Job:
    """Cancel a queued job at once; ask the runner to stop a running one.

    Force ends the attempt without waiting for the runner, on which Terraform may still be running.
    """
    with transaction.atomic():
        # Another move of the job waits for this lock, or was committed before it.
        status = Job.objects.select_for_update().values_list("status", flat=True).get(pk=job.pk)
        if is_final(status):
            raise JobFinal(f"{job} has already ended: {status} is final. There is nothing to cancel.")
        if status == QUEUED:
            cancel_queued(job=job, cancelled_by=requested_by)
        else:
            _request_stop(job, requested_by)
        action = "job.cancelled" if status == QUEUED else "job.cancel_requested"
        record(organization=job.organization, actor=requested_by, action=action, target=job, force=force)
    if force:
        _end_by_force(job, requested_by)
    job.refresh_from_db()
    return job


def retry_job(*, job: Job, requested_by: User) -> Job:
    """Queue a new job with the same snapshot, which continues from the current state.

    A job that applied a plan cannot apply it again: its retry plans the rest, where the hooks allow it.
    """
    if not job.is_final:
        raise Conflict(f"{job} has not ended yet. Wait for it, or cancel it.")
    if job.spec is None:
        raise Conflict(f"{job} is not a job of a Spec, so it cannot be retried here.")
    for hook in hooks.before_retry[job.type]:
        hook(job)
    return request_job(
        spec=job.spec,
        type=JobType(job.type),
        requested_by=requested_by,
        snapshot=job.config_snapshot,
        revision=job.revision,
        retry_of=job,
    )


def require_requestable(spec: Spec, snapshot: dict[str, Any]) -> None:
    """Refuse a job that another package does not allow, such as one whose identity has changed."""
    for hook in hooks.before_request:
        hook(spec, snapshot)


def require_unprotected(spec: Spec) -> None:
    """Refuse to destroy a protected Spec without a reviewed destroy plan."""
    if spec.protected:
        raise GateClosed(
            f"{spec.name} is protected: create a destroy plan, have it approved, then apply it.",
            gate="protected",
        )


def current_document(spec: Spec, revision: Revision | None = None) -> dict[str, Any]:
    """Return the snapshot that a job of the Spec would carry now: of a revision, else of the newest."""
    fields: dict[str, Any] = {}
    for hook in hooks.snapshot_fields:
        fields = hooks.add_fields(fields, hook(spec))
    return snapshot_of(spec, revision) | fields


def enqueue(new: queue.NewJob, *, requested_by: User | None) -> Job:
    """Add the job to its pool's queue, unless submissions are drained."""
    queued = queue.enqueue(job=new, actor=_actor(requested_by))
    if queued is None:
        raise Draining
    job = Job(**dataclasses.asdict(new), **dataclasses.asdict(queued), requested_by=requested_by)
    job._state.adding = False
    announce(job_id=job.pk, organization_id=job.organization_id, queued_in=job.pool_id)
    return job


def _enqueue(
    *,
    spec: Spec,
    type: JobType,
    document: dict[str, Any],
    revision: int | None,
    requested_by: User | None,
    plan_id: UUID | None,
    retry_of: Job | None,
    idempotency_key: str | None,
    request_sha256: str,
) -> Job:
    kind = kind_of(type)
    new = queue.NewJob(
        organization_id=spec.organization_id,
        type=type.value,
        spec_id=spec.pk,
        plan_id=plan_id,
        pool_id=spec.pool_id,
        revision=revision,
        config_snapshot=document,
        snapshot_hash=snapshot_hash(document),
        retry_of_id=retry_of.pk if retry_of else None,
        idempotency_key=idempotency_key,
        request_sha256=request_sha256,
        max_retries=kind.max_retries,
        timeout_seconds=kind.timeout_seconds,
    )
    job = enqueue(new, requested_by=requested_by)
    job.spec = spec
    # The enqueue has locked the organization's row, for which an archiving waits too.
    if queue.is_archived(spec_id=spec.pk):
        raise SpecArchived
    return job


def _snapshot_to_plan(spec: Spec, revision: Revision, *, destroy: bool, speculative: bool) -> dict[str, Any]:
    document = current_document(spec, revision)
    if speculative:
        return intent.as_speculative(document, revision=revision.number)
    return intent.as_destroy(document) if destroy else document


def _request_digest(
    *, spec: Spec, type: JobType, plan_id: UUID | None, retry_of: Job | None, plan_intent: dict[str, Any]
) -> str:
    """Return the digest of the request, which a repeated Idempotency-Key must match."""
    retried = str(retry_of.pk) if retry_of else ""
    request = {"spec": str(spec.pk), "type": type, "plan": str(plan_id or ""), "retry_of": retried}
    return snapshot_hash({**request, **plan_intent})


def _actor(person: User | None) -> queue.Actor:
    if person is None:
        return queue.Actor(ActorKind.SYSTEM, None, "slipway")
    return queue.Actor(ActorKind.PERSON, person.pk, person.get_username())


def _first_request(organization_id: UUID, idempotency_key: str | None, request_sha256: str) -> Job | None:
    if idempotency_key is None:
        return None
    job = Job.objects.filter(organization_id=organization_id, idempotency_key=idempotency_key).first()
    if job is not None and job.request_sha256 != request_sha256:
        raise IdempotencyMismatch
    return job


def _explain_refusal(
    error: IntegrityError, spec: Spec, idempotency_key: str | None, request_sha256: str
) -> Job:
    """Return the first job of a repeated key, or refuse with the job that holds the Spec."""
    # Either index may be the first to refuse a repeat: the first job is active, and it has the key.
    first = _first_request(spec.organization_id, idempotency_key, request_sha256)
    if first is not None:
        return first
    if "job_one_active_per_spec" not in str(error):
        raise error
    holder = Job.objects.filter(spec=spec, status__in=ACTIVE_STATUSES).select_related("organization").first()
    if holder is None:
        raise JobActive(f"Another job of {spec.name} has just ended. Try again.") from error
    raise JobActive(
        f"{spec.name} is in use by {holder}, which is {holder.status}. Wait for it, or cancel it.",
        holder_url=reverse("job", args=[holder.organization.slug, holder.number]),
        holder_id=str(holder.pk),
    ) from error


def _request_stop(job: Job, requested_by: User) -> None:
    """Record the cancel for the runner's next heartbeat. The first reason and the first person stay."""
    jobs = Job.objects.filter(pk=job.pk)
    jobs.filter(cancel_requested_at=None).update(cancel_requested_at=Now(), cancel_reason=CancelReason.PERSON)
    jobs.filter(cancelled_by=None).update(cancelled_by=requested_by)
    announce(job_id=job.pk, organization_id=job.organization_id)


def _end_by_force(job: Job, requested_by: User) -> None:
    claim_id = _claim_id_of(job)
    if claim_id is None:
        return
    name = requested_by.get_username()
    end(
        claim_id=claim_id,
        ending=dataclasses.replace(CANCELLED_BY_PERSON, error_message=f"Force-cancelled by {name}."),
        attempt=queue.AttemptEnd(
            outcome=Outcome.CANCELLED,
            orphaned=True,
            reason=f"Force-cancelled by {name}. Terraform may still be running on the runner.",
        ),
        actor=_actor(requested_by),
    )


def _claim_id_of(job: Job) -> UUID | None:
    return Job.objects.filter(pk=job.pk).values_list("claim__claim_id", flat=True).first()
