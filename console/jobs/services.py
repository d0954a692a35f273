"""A person's actions on jobs: request, cancel, retry."""

import dataclasses
from dataclasses import dataclass, field
from functools import reduce
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.urls import reverse

from console.accounts.models import User
from console.audit.actions import AuditAction
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
from specs.selectors import current_revision, revision_of, snapshot_of
from specs.services import check_document, follow_git
from specs.snapshot import snapshot_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """One request for a job of a Spec. A repeat with the same Idempotency-Key must ask for the same."""

    spec: Spec
    type: JobType
    requested_by: User | None
    #: See `console.jobs.intent`; empty for a plan of the Spec as it is.
    plan_intent: dict[str, Any] = field(default_factory=dict)
    plan_id: UUID | None = None
    retry_of: Job | None = None
    idempotency_key: str | None = None

    @property
    def digest(self) -> str:
        request = {
            "spec": str(self.spec.pk),
            "type": self.type,
            "plan": str(self.plan_id or ""),
            "retry_of": str(self.retry_of.pk) if self.retry_of else "",
        }
        return snapshot_hash({**request, **self.plan_intent})


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
    request = JobRequest(
        spec=spec,
        type=JobType.PLAN,
        requested_by=requested_by,
        plan_intent=intent.intent_to(destroy=destroy, preview_revision=revision),
        idempotency_key=idempotency_key,
    )
    if first := first_job_of(request):
        return first
    # After the look for a repeat, which must not fetch from Git again.
    planned = follow_git(spec=spec, author=requested_by) if revision is None else revision_of(spec, revision)
    return queue_job(request, snapshot=_snapshot_to_run(request, planned), revision=planned.number)


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
    retry_of: Job | None = None,
    idempotency_key: str | None = None,
) -> Job:
    """Queue one job of a Spec: with this snapshot, else with the newest revision's."""
    request = JobRequest(
        spec=spec,
        type=type,
        requested_by=requested_by,
        plan_intent=intent.intent_of(snapshot or {}),
        retry_of=retry_of,
        idempotency_key=idempotency_key,
    )
    if first := first_job_of(request):
        return first
    if snapshot is None:
        newest = current_revision(spec)
        snapshot, revision = _snapshot_to_run(request, newest), newest.number
    elif retry_of is None:
        check_document(snapshot)
    return queue_job(request, snapshot=snapshot, revision=revision)


def first_job_of(request: JobRequest) -> Job | None:
    """Return the job that this request's Idempotency-Key has queued before."""
    if request.idempotency_key is None:
        return None
    jobs = Job.objects.filter(organization_id=request.spec.organization_id)
    job = jobs.filter(idempotency_key=request.idempotency_key).first()
    if job is not None and job.request_sha256 != request.digest:
        raise IdempotencyMismatch
    return job


def queue_job(request: JobRequest, *, snapshot: dict[str, Any], revision: int | None) -> Job:
    """Queue the job. A second active job of the Spec is refused with the first one's URL."""
    require_requestable(request.spec, snapshot)
    require_gates_open(spec=request.spec, type=request.type)
    try:
        with transaction.atomic():
            return _enqueue(request, snapshot, revision)
    except IntegrityError as error:
        # The index decides, not a check before: two clicks can race.
        return _explain_refusal(error, request)


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
        action = AuditAction.JOB_CANCELLED if status == QUEUED else AuditAction.JOB_CANCEL_REQUESTED
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
    return _with_fields_of_hooks(spec, snapshot_of(spec, revision))


def enqueue(new: queue.NewJob, *, requested_by: User | None) -> Job:
    """Add the job to its pool's queue, unless submissions are drained."""
    queued = queue.enqueue(job=new, actor=_actor(requested_by))
    if queued is None:
        raise Draining
    job = Job(**dataclasses.asdict(new), **dataclasses.asdict(queued), requested_by=requested_by)
    job._state.adding = False
    announce(job_id=job.pk, organization_id=job.organization_id, queued_in=job.pool_id)
    return job


def _snapshot_to_run(request: JobRequest, revision: Revision) -> dict[str, Any]:
    """Return the snapshot of a new job; refuse one that lacks a value or does not parse."""
    document = snapshot_of(request.spec, revision)
    check_document(document)
    return _with_fields_of_hooks(request.spec, document) | request.plan_intent


def _with_fields_of_hooks(spec: Spec, document: dict[str, Any]) -> dict[str, Any]:
    parts = [hook(spec) for hook in hooks.snapshot_fields]
    return document | reduce(hooks.add_fields, parts, dict[str, Any]())


def _enqueue(request: JobRequest, snapshot: dict[str, Any], revision: int | None) -> Job:
    spec, kind = request.spec, kind_of(request.type)
    new = queue.NewJob(
        organization_id=spec.organization_id,
        type=request.type.value,
        spec_id=spec.pk,
        plan_id=request.plan_id,
        pool_id=spec.pool_id,
        revision=revision,
        config_snapshot=snapshot,
        snapshot_hash=snapshot_hash(snapshot),
        retry_of_id=request.retry_of.pk if request.retry_of else None,
        idempotency_key=request.idempotency_key,
        request_sha256=request.digest,
        max_retries=kind.max_retries,
        timeout_seconds=kind.timeout_seconds,
    )
    job = enqueue(new, requested_by=request.requested_by)
    job.spec = spec
    # The enqueue has locked the organization's row, for which an archiving waits too.
    if queue.is_archived(spec_id=spec.pk):
        raise SpecArchived
    return job


def _actor(person: User | None) -> queue.Actor:
    if person is None:
        return queue.Actor(ActorKind.SYSTEM, None, "slipway")
    return queue.Actor(ActorKind.PERSON, person.pk, person.get_username())


def _explain_refusal(error: IntegrityError, request: JobRequest) -> Job:
    """Return the first job of a repeated key, or refuse with the job that holds the Spec."""
    # Either index may be the first to refuse a repeat: the first job is active, and it has the key.
    if first := first_job_of(request):
        return first
    spec = request.spec
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
