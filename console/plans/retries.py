"""Going on with what ended part-way: the reviewed plan is spent, and what is left must be a part of it."""

from typing import Any
from uuid import UUID

from console.errors import Conflict, GateClosed, PlanStale
from console.jobs.lifecycle import SUCCESS
from console.jobs.models import Job
from console.jobs.services import require_unprotected
from console.jobs.types import CHANGING_TYPES
from console.plans.expiry import require_unexpired
from console.plans.models import Plan
from runner.protocol import JobType, RetriedPlan, ReviewedChange

#: The types that apply a plan.
APPLYING = (JobType.DEPLOY, JobType.DESTROY)

#: Why a retry ended without applying anything: a runner's error code.
REVIEW_NEEDED = "review_needed"


def reviewed_plan_of(job: Job) -> Plan | None:
    """The plan that a retry goes on with: the one that the first job of its chain applied."""
    earlier = job.retry_of
    while earlier is not None and earlier.plan_id is None:
        earlier = earlier.retry_of
    return earlier.plan if earlier is not None else None


def require_retry_makes_sense(job: Job) -> None:
    """Refuse to try again what did its work, never began, was overtaken, or has expired."""
    if job.type == JobType.DEPLOY and job.spec is not None:
        require_unexpired(job.spec)
    if job.status == SUCCESS:
        raise Conflict(f"{job} succeeded, so there is nothing to retry. Plan again to see what would change.")
    if job.plan is None and reviewed_plan_of(job) is None:
        return _require_may_destroy(job)
    if job.plan is not None and job.plan.spent_by_id != job.pk:
        raise Conflict(f"{job} never began, so there is nothing to retry. {_what_to_do_instead(job.plan)}")
    later = _later_change(job)
    if later is not None:
        raise PlanStale(f"{later} ran since, so what {job} left is no longer what is missing. Plan again.")


def require_reviewed(job: Job) -> None:
    """Right before the start: a job without a plan of its own goes on with one that was reviewed."""
    if job.type == JobType.DEPLOY and job.spec is not None:
        require_unexpired(job.spec)
    if reviewed_plan_of(job) is not None:
        return
    if job.type == JobType.DEPLOY:
        raise PlanStale("This DEPLOY names no plan. Plan again, then apply.")
    _require_may_destroy(job)


def retried_plan(job: Job, claim_id: UUID) -> dict[str, Any]:
    """Describe, for a retry's claim, the plan that was reviewed."""
    if job.type not in APPLYING or job.plan_id is not None or job.retry_of_id is None:
        return {}
    plan = reviewed_plan_of(job)
    if plan is None:
        return {}
    rows = plan.rows.filter(drifted=False).order_by("position")
    changes = [
        ReviewedChange(address=address, action=action, deposed=bool(deposed))
        for address, action, deposed in rows.values_list("address", "action", "body__deposed")
    ]
    lock = plan.files.provider_lock
    return {"retry": RetriedPlan(plan_number=plan.number, provider_lock=lock, changes=changes)}


def may_leave_a_plan(job: Job) -> bool:
    """Tell whether a job may upload a plan: a PLAN, or a retry whose remaining changes need a review."""
    return job.type == JobType.PLAN or (
        job.type in APPLYING and job.plan_id is None and bool(job.retry_of_id)
    )


def _require_may_destroy(job: Job) -> None:
    """A DESTROY without a plan was confirmed by name, which is enough for a spec that is not protected."""
    if job.type == JobType.DEPLOY or job.spec is None:
        raise GateClosed(f"{job} applied no plan that could be continued. Plan again, then apply.")
    require_unprotected(job.spec)


def _what_to_do_instead(plan: Plan) -> str:
    if plan.spent_by_id is None:
        return f"Plan {plan.number} is unspent: apply it again."
    return f"Plan {plan.number} was applied by {plan.spent_by}."


def _later_change(job: Job) -> Job | None:
    """A job that may have changed the same infrastructure after this one."""
    later = Job.objects.filter(
        spec=job.spec, pk__gt=job.pk, type__in=CHANGING_TYPES, started_at__isnull=False
    )
    # A retry that ended with a plan to review has changed nothing.
    return later.exclude(error_code=REVIEW_NEEDED).order_by("pk").first()
