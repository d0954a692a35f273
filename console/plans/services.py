"""Services for plans: a PLAN stores one, a person applies it, a DEPLOY spends it."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from console.accounts.access import require_requester_right
from console.accounts.models import User
from console.accounts.rights import Right
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import (
    Conflict,
    Forbidden,
    GateClosed,
    InvalidMessage,
    PlanSpent,
    PlanStale,
    SlipwayError,
    StaleClaim,
)
from console.inputs import without_nul
from console.jobs.hooks import JobEnd
from console.jobs.intent import intent_of, is_destroy, is_speculative
from console.jobs.lifecycle import SUCCESS
from console.jobs.models import Job
from console.jobs.services import JobRequest, first_job_of, queue_job, require_requestable
from console.live import topics
from console.live.publish import publish_on_commit
from console.plans.approvals import require_approvals
from console.plans.changes import (
    count_in_state,
    drift,
    in_order_of_review,
    output_changes,
    resource_changes,
    summarize,
)
from console.plans.destroy_guard import guard_reasons, require_confirmation
from console.plans.expiry import require_unexpired
from console.plans.models import Approval, Plan, PlanChange, PlanFile
from console.plans.retries import REVIEW_NEEDED, may_leave_a_plan, require_reviewed
from console.plans.staleness import staleness_of
from console.vault import seal
from runner.protocol import JobType


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedPlan:
    """The upload of a PLAN attempt: the file, its JSON, the provider lock and its inputs."""

    file: bytes
    json: bytes
    provider_lock: str
    state_lineage: str
    state_serial: int
    terraform_version: str
    provider_lock_sha256: str


def store_plan(*, job_id: UUID, claim_id: UUID, runner_id: UUID, uploaded: UploadedPlan) -> Plan:
    """Keep a plan for review. A repeat of the same upload returns the plan that is there."""
    document = _decode(uploaded.json)
    file_sha256 = hashlib.sha256(uploaded.file).hexdigest()
    with transaction.atomic():
        job = _lock_plan_job(job_id, claim_id, runner_id)
        # A later attempt of the same job replaces what an earlier one left, which nobody has reviewed.
        existing = Plan.objects.filter(job=job).first()
        if existing and existing.file_sha256 == file_sha256:
            return existing
        number = existing.number if existing else _next_number(job)
        if existing:
            existing.delete()
        return _create(job, number, uploaded, document, file_sha256)


def request_deploy(
    *, plan: Plan, requested_by: User, confirmation: str = "", idempotency_key: str | None = None
) -> Job:
    """Queue the apply of exactly the plan that was reviewed; of a plan to destroy, the DESTROY."""
    request = JobRequest(
        spec=plan.spec,
        type=JobType.DESTROY if plan.destroy else JobType.DEPLOY,
        requested_by=requested_by,
        plan_intent=intent_of(plan.job.config_snapshot),
        plan_id=plan.pk,
        idempotency_key=idempotency_key,
    )
    if first := first_job_of(request):
        return first
    require_applicable(plan, applied_by=requested_by)
    require_confirmation(plan, confirmation)
    with transaction.atomic():
        job = queue_job(request, snapshot=plan.job.config_snapshot, revision=plan.job.revision)
        if reasons := guard_reasons(plan):
            record(
                organization=plan.organization,
                actor=requested_by,
                action=AuditAction.PLAN_CONFIRMED,
                target=plan,
                guard=reasons,
            )
    return job


def approve_plan(*, plan: Plan, approved_by: User) -> Approval:
    """Approve exactly this plan. The requester cannot; a repeat changes nothing."""
    if plan.job.requested_by_id == approved_by.pk:
        raise Forbidden("The requester of a plan cannot approve it. Ask another operator.")
    with transaction.atomic():
        _lock_unspent(plan)
        require_complete(plan)
        require_fresh(plan)
        # An approval of another fingerprint is void and is replaced.
        approval, created = Approval.objects.update_or_create(
            plan=plan, approved_by=approved_by, defaults={"fingerprint": plan.fingerprint}
        )
        if created:
            _record(plan, approved_by, AuditAction.PLAN_APPROVED)
    return approval


@transaction.atomic
def withdraw_approval(*, plan: Plan, withdrawn_by: User) -> None:
    """Withdraw one's own approval, as long as nobody has applied the plan."""
    _lock_unspent(plan)
    if plan.approvals.filter(approved_by=withdrawn_by).delete()[0]:
        _record(plan, withdrawn_by, AuditAction.PLAN_APPROVAL_WITHDRAWN)


def apply_by_itself(end: JobEnd) -> None:
    """After a PLAN of a spec that applies by itself: the DEPLOY, where nothing stands in its way.

    In the PLAN's own transaction, so that it happens once or not at all; a refusal is noted and shown.
    """
    plan = Plan.objects.select_related("spec__organization", "job__requested_by").filter(job=end.job).first()
    if plan is None or not plan.spec.auto_apply or not (plan.change_count or plan.output_changes):
        return
    if plan.destroy or plan.speculative or plan.job.requested_by is None:
        return
    try:
        require_requester_right(plan.job.requested_by, plan.spec.organization, Right.APPLY)
        deploy = request_deploy(plan=plan, requested_by=plan.job.requested_by)
    except SlipwayError as refusal:
        record(
            organization=plan.organization,
            actor=None,
            action=AuditAction.PLAN_AUTO_APPLY_BLOCKED,
            target=plan,
            reason=str(refusal),
            code=refusal.code,
        )
    else:
        record(
            organization=plan.organization, actor=None, action=AuditAction.PLAN_AUTO_APPLIED, target=deploy
        )


def spend(job: Job) -> None:
    """Spend the plan that a job applies, in the transaction that starts it: once, by one job."""
    plan = job.plan
    if plan is None:
        return require_reviewed(job)
    try:
        changed = Plan.objects.filter(pk=plan.pk, spent_by=None).update(spent_by=job, spent_at=timezone.now())
    except IntegrityError as error:
        raise PlanSpent from error
    if not changed:
        raise PlanSpent(_spent_message(plan))
    # The queue may have been long: what was true of the plan when it was asked for may no longer be.
    if not plan.destroy:
        require_unexpired(plan.spec)
    require_fresh(plan)
    require_approvals(plan, applied_by=job.requested_by)


def require_applicable(plan: Plan, *, applied_by: User | None) -> None:
    """Everything that a plan must be before it is applied, and that no confirmation can replace."""
    require_unspent(plan)
    require_not_speculative(plan)
    require_complete(plan)
    if not plan.destroy:
        require_unexpired(plan.spec)
    require_fresh(plan)
    require_requestable(plan.spec, plan.job.config_snapshot)
    require_approvals(plan, applied_by=applied_by)


def require_unspent(plan: Plan) -> None:
    if plan.spent_by_id is not None:
        raise PlanSpent(_spent_message(plan))


def require_not_speculative(plan: Plan) -> None:
    if plan.speculative:
        raise Conflict(f"Plan {plan.number} is speculative and cannot be applied. Plan the Spec.")


def require_complete(plan: Plan) -> None:
    """The job that made the plan has ended well; until then a later attempt may replace the plan."""
    job = plan.job
    if job.status != SUCCESS and job.error_code != REVIEW_NEEDED:
        raise GateClosed(
            f"Plan {plan.number} comes from {job}, which is {job.status}: only what a PLAN that succeeded "
            "left can be applied.",
            gate="job_success",
            required_job_type=JobType.PLAN.value,
        )


def require_fresh(plan: Plan) -> None:
    stale = staleness_of(plan)
    if stale is not None:
        raise PlanStale(
            f"Plan {plan.number} is stale: {stale} Plan again, then apply.",
            reason=stale.reason,
            changed=list(stale.changed),
        )


def refusal_of(plan: Plan, *, applied_by: User | None = None) -> SlipwayError | None:
    """Return the refusal that an apply would meet now, confirmation aside."""
    try:
        require_applicable(plan, applied_by=applied_by)
    except SlipwayError as refusal:
        return refusal
    return None


def _spent_message(plan: Plan) -> str:
    return f"Plan {plan.number} was applied before; a plan is applied once. Plan again."


def _lock_unspent(plan: Plan) -> None:
    """Lock the plan, so that an apply that starts at the same time waits for this or is seen by it."""
    if not Plan.objects.select_for_update().filter(pk=plan.pk, spent_by=None).exists():
        raise PlanSpent(_spent_message(plan))


def _record(plan: Plan, actor: User, action: AuditAction) -> None:
    record(
        organization=plan.organization,
        actor=actor,
        action=action,
        target=plan,
        fingerprint=plan.fingerprint,
    )
    publish_on_commit(topics.organization(plan.organization_id, "specs"))


def _create(
    job: Job, number: int, uploaded: UploadedPlan, document: dict[str, Any], file_sha256: str
) -> Plan:
    changes, drifted = in_order_of_review(resource_changes(document)), drift(document)
    plan = Plan.objects.create(
        organization_id=job.organization_id,
        spec_id=_spec_id(job),
        job=job,
        number=number,
        snapshot_hash=job.snapshot_hash,
        state_lineage=uploaded.state_lineage,
        state_serial=uploaded.state_serial,
        terraform_version=uploaded.terraform_version,
        provider_lock_sha256=uploaded.provider_lock_sha256,
        file_sha256=file_sha256,
        resource_count=count_in_state(document),
        destroy=is_destroy(job.config_snapshot) or job.type == JobType.DESTROY,
        speculative=is_speculative(job.config_snapshot),
        summary=summarize(document),
        change_count=len(changes),
        drift_count=len(drifted),
        output_changes=output_changes(document),
    )
    _create_rows(plan, changes, drifted)
    PlanFile.objects.create(
        plan=plan,
        sealed_file=seal(uploaded.file, context=f"plan-file:{plan.pk}"),
        sealed_json=seal(uploaded.json, context=f"plan-json:{plan.pk}"),
        provider_lock=uploaded.provider_lock,
    )
    publish_on_commit(topics.job(job.pk), topics.organization(job.organization_id, "specs"))
    return plan


def _create_rows(plan: Plan, changes: list[dict[str, Any]], drifted: list[dict[str, Any]]) -> None:
    bodies = [*((body, False) for body in changes), *((body, True) for body in drifted)]
    PlanChange.objects.bulk_create(
        PlanChange(
            plan=plan,
            position=position,
            drifted=is_drift,
            action=body["action"],
            module=body["module"],
            address=body["address"],
            type=body["type"],
            body=body,
        )
        for position, (body, is_drift) in enumerate(bodies, start=1)
    )


def _lock_plan_job(job_id: UUID, claim_id: UUID, runner_id: UUID) -> Job:
    # The claim is locked with the job: while this waits for the job, the claim may be taken back.
    jobs = Job.objects.select_for_update(of=("self", "claim")).select_related("claim")
    job = jobs.filter(pk=job_id, claim__claim_id=claim_id, claim__runner_id=runner_id).first()
    if job is None or not may_leave_a_plan(job):
        raise StaleClaim
    return job


def _next_number(job: Job) -> int:
    """One active job per spec, so nobody else numbers a plan of it now."""
    last = Plan.objects.filter(spec=job.spec).aggregate(last=Max("number"))["last"]
    return (last or 0) + 1


def _spec_id(job: Job) -> UUID:
    if job.spec_id is None:
        raise InvalidMessage("Only a job of a Spec makes a plan.")
    return job.spec_id


def _decode(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"json: the plan's JSON cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise InvalidMessage("json: expected an object, as `terraform show -json` prints it")
    if b"\\u0000" in text:
        # A resource may have NUL in an attribute: the upload would fail, and be tried again without end.
        document = without_nul(document)
    checked: dict[str, Any] = document
    return checked
