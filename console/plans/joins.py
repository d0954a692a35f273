"""The hooks by which plans take part in the life of jobs."""

from functools import partial
from typing import Any

from console.jobs import hooks
from console.plans.claims import plan_reference
from console.plans.models import PlanFile
from console.plans.retries import APPLYING, require_retry_makes_sense, retried_plan
from console.plans.services import apply_by_itself, spend
from console.vault import SEALED_FIELDS, SealedField
from runner.protocol import JobStatus, JobType


def join() -> None:
    for type in APPLYING:
        hooks.before_start[type].append(spend)
        hooks.before_retry[type].append(require_retry_makes_sense)
    hooks.on_end(apply_by_itself, types=[JobType.PLAN], statuses=[JobStatus.SUCCESS], needs=has_a_plan)
    hooks.claim_fields += [plan_reference, retried_plan]
    for field, kind in (("sealed_file", "plan-file"), ("sealed_json", "plan-json")):
        SEALED_FIELDS.append(SealedField(PlanFile, field, partial(_plan_context, kind)))


def has_a_plan(result: dict[str, Any]) -> bool:
    """Return whether a PLAN uploaded a plan; one that did not has nothing to apply."""
    return bool(result.get("plan_id"))


def _plan_context(kind: str, files: Any) -> str:
    return f"{kind}:{files.plan_id}"
