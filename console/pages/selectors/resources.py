"""The resources that a job changes, as they come with its page."""

from typing import Any

from console.jobs.models import Job
from console.plans.models import Plan, PlanChange


def first_resources(job: Job, *, limit: int) -> list[dict[str, Any]]:
    """The resources changed by the plan that the job applies or has made, as many as the page starts with."""
    plan_id = job.plan_id or Plan.objects.filter(job=job).values_list("pk", flat=True).first()
    if plan_id is None:
        return []
    fields = ("address", "action", "module", "type")
    rows = PlanChange.objects.filter(plan_id=plan_id, drifted=False).order_by("position")
    return [dict(zip(fields, row, strict=True)) for row in rows.values_list(*fields)[:limit]]
