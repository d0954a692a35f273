"""What people do to jobs: ask for them, cancel them, try them again."""

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
from console.jobs import hooks, purpose, queue
from console.jobs.gates import require_gates_open
from console.jobs.lifecycle import ACTIVE_STATUSES, CANCELLED, CANCELLED_BY_PERSON, POLICIES, QUEUED, is_final
from console.jobs.models import Job, Outcome
from console.live import topics
from console.live.publish import publish_on_commit
from runner.protocol import CancelReason, JobType
from specs.models import Revision, Spec
from specs.selectors import current_revision, revision_of, snapshot_of
from specs.services import check_document, follow_git
from specs.snapshot import snapshot_hash


def request_plan(
    *,
    spec: Spec,
    requested_by: User,
    destroy: bool = False,
    revision: int | None = None,
    idempotency_key: str | None = None,
) -> Job:
    """Queue a plan of the spec as it is; of its destroy; or, only to look at, of one of its revisions."""
    if revision is not None and destroy:
        raise BadInput("A look at a revision destroys nothing: give either revision or destroy.")
    looked_at = None if revision is None else revision_of(spec, revision)
    chosen = looked_at or follow_git(spec=spec, author=requested_by)
    return request_job(
        spec=spec,
        type=JobType.PLAN,
        requested_by=requested_by,
        snapshot=_snapshot_to_plan(spec, chosen, destroy=destroy, only_to_look_at=looked_at is not None),
        revision=chosen.number,
        idempotency_key=idempotency_key,
    )


def request_destroy(
    *, spec: Spec, confirmation: str, requested_by: User, idempotency_key: str | None = None
) -> Job:
    """Queue the destruction of everything the spec made; the name was typed to confirm it."""
    if confirmation != spec.name:
        raise ConfirmationMismatch(
            f"The name that was typed is not {spec.name!r}. Nothing was done; type it exactly."
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

    `require` refuses by raising. A repeat of a request that was accepted is not asked again.
    """
    if snapshot is None:
        newest = current_revision(spec)
        snapshot, revision = current_document(spec, newest), newest.number
    request_sha256 = _request_digest(
        spec=spec, type=type, plan_id=plan_id, retry_of=retry_of, meant=purpose.purpose_of(snapshot)
    )
    repeated = _repeated(spec.organization_id, idempotency_key, request_sha256)
    if repeated is not None:
        return repeated
    if require is not None:
        require()
    require_requestable(spec, snapshot)
    require_gates_open(spec=spec, type=type)
    if plan_id is None and retry_of is None:
        check_document(snapshot)  # what lacks a value or does not parse is refused before it is queued
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
    """Cancel at once what is queued; ask the runner to stop what is under way.

    Force fences the attempt at once, without waiting for the runner. Terraform may still be running there.
    """
    with transaction.atomic():
        # Whoever moves the job at the same time waits for this, or is seen by it.
        status = Job.objects.select_for_update().values_list("status", flat=True).get(pk=job.pk)
        if is_final(status):
            raise JobFinal(f"{job} has ended: {status} is final. There is nothing to cancel.")
        cancel = _cancel_queued if status == QUEUED else _ask_to_stop
        cancel(job, requested_by)
        action = "job.cancelled" if status == QUEUED else "job.cancel_requested"
        record(organization=job.organization, actor=requested_by, action=action, target=job, force=force)
        announce(job)
    if force:
        _fence(job, requested_by)
    job.refresh_from_db()
    return job


def retry_job(*, job: Job, requested_by: User) -> Job:
    """A new job with the same snapshot, which continues from the state as it is now.

    What applied a plan cannot apply it again: it plans what is left, and other rooms say whether it may.
    """
    if not job.is_final:
        raise Conflict(f"{job} has not ended yet. Wait for it, or cancel it.")
    if job.spec is None:
        raise Conflict(f"{job} acts on no Spec and cannot be tried again from here.")
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
    """Refuse a job that another package does not allow, such as one with an identity that has changed."""
    for hook in hooks.before_request:
        hook(spec, snapshot)


def require_unprotected(spec: Spec) -> None:
    """Refuse to destroy what is protected without a plan of the destroy that was reviewed."""
    if spec.protected:
        raise GateClosed(
            f"{spec.name} is protected: plan its destroy, have the plan approved, then apply it.",
            gate="protected",
        )


def current_document(spec: Spec, revision: Revision | None = None) -> dict[str, Any]:
    """What a job of the spec would carry now: a revision, else the newest, and what other rooms add to it."""
    document = snapshot_of(spec, revision)
    for hook in hooks.snapshot_fields:
        document = document | hook(spec)
    return document


def enqueue(new: queue.NewJob, *, requested_by: User | None) -> Job:
    """Put the job into its pool's queue, unless submissions are drained."""
    queued = queue.enqueue(job=new, actor=_actor(requested_by))
    if queued is None:
        raise Draining
    job = Job(**dataclasses.asdict(new), **dataclasses.asdict(queued), requested_by=requested_by)
    job._state.adding = False
    announce(job)
    publish_on_commit(topics.pool(job.pool_id))
    return job


def announce(job: Job) -> None:
    """Tell open pages that the job changed."""
    publish_on_commit(topics.job(job.pk), topics.organization(job.organization_id, "jobs"))


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
    policy = POLICIES[type]
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
        max_retries=policy.max_retries,
        timeout_seconds=policy.timeout_seconds,
    )
    job = enqueue(new, requested_by=requested_by)
    job.spec = spec
    # The organization's row is ours by now, for which an archiving Spec waits too.
    if queue.is_archived(spec_id=spec.pk):
        raise SpecArchived
    return job


def _snapshot_to_plan(
    spec: Spec, revision: Revision, *, destroy: bool, only_to_look_at: bool
) -> dict[str, Any]:
    document = current_document(spec, revision)
    if only_to_look_at:
        return purpose.to_look_at(document, revision=revision.number)
    return purpose.to_destroy(document) if destroy else document


def _request_digest(
    *, spec: Spec, type: JobType, plan_id: UUID | None, retry_of: Job | None, meant: dict[str, Any]
) -> str:
    """What a repeated Idempotency-Key must ask for again."""
    retried = str(retry_of.pk) if retry_of else ""
    asked = {"spec": str(spec.pk), "type": type, "plan": str(plan_id or ""), "retry_of": retried}
    return snapshot_hash({**asked, **meant})


def _actor(person: User | None) -> queue.Actor:
    if person is None:
        return queue.Actor(ActorKind.SYSTEM, None, "slipway")
    return queue.Actor(ActorKind.PERSON, person.pk, person.get_username())


def _repeated(organization_id: UUID, idempotency_key: str | None, request_sha256: str) -> Job | None:
    if idempotency_key is None:
        return None
    job = Job.objects.filter(organization_id=organization_id, idempotency_key=idempotency_key).first()
    if job is not None and job.request_sha256 != request_sha256:
        raise IdempotencyMismatch
    return job


def _explain_refusal(
    error: IntegrityError, spec: Spec, idempotency_key: str | None, request_sha256: str
) -> Job:
    """Which index refused the row, and what that means. Returns the first job for a repeated key."""
    # Either index may be the first to refuse a repeat: the first job is active, and it has the key.
    repeated = _repeated(spec.organization_id, idempotency_key, request_sha256)
    if repeated is not None:
        return repeated
    if "job_one_active_per_spec" not in str(error):
        raise error
    holder = Job.objects.filter(spec=spec, status__in=ACTIVE_STATUSES).select_related("organization").first()
    if holder is None:
        raise JobActive(f"Another job of {spec.name} has just ended. Try again.") from error
    raise JobActive(
        f"{spec.name} is held by {holder}, which is {holder.status}. Wait for it, or cancel it.",
        holder_url=reverse("job", args=[holder.organization.slug, holder.number]),
        holder_id=str(holder.pk),
    ) from error


def _cancel_queued(job: Job, requested_by: User) -> None:
    Job.objects.filter(pk=job.pk, status=QUEUED).update(
        status=CANCELLED,
        finished_at=Now(),
        cancel_requested_at=Now(),
        cancel_reason=CancelReason.PERSON,
        cancelled_by=requested_by,
        error_code=CANCELLED_BY_PERSON.error_code,
        error_message=f"Cancelled by {requested_by.get_username()} before it began.",
    )


def _ask_to_stop(job: Job, requested_by: User) -> None:
    """Note the request for the runner's next heartbeat. Who or what asked first stays on record."""
    asked = Job.objects.filter(pk=job.pk)
    asked.filter(cancel_requested_at=None).update(
        cancel_requested_at=Now(), cancel_reason=CancelReason.PERSON
    )
    asked.filter(cancelled_by=None).update(cancelled_by=requested_by)


def _fence(job: Job, requested_by: User) -> None:
    claim_id = _claim_id_of(job)
    if claim_id is None:
        return
    queue.end_attempt(
        claim_id=claim_id,
        ending=CANCELLED_BY_PERSON,
        attempt=queue.AttemptEnd(
            outcome=Outcome.CANCELLED,
            orphaned=True,
            reason=f"Force-cancelled by {requested_by.get_username()}. Terraform may still be running there.",
        ),
        actor=_actor(requested_by),
    )
    announce(job)
    for hook in hooks.on_lost:
        hook(claim_id)


def _claim_id_of(job: Job) -> UUID | None:
    return Job.objects.filter(pk=job.pk).values_list("claim__claim_id", flat=True).first()
