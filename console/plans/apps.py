from functools import partial
from typing import Any
from uuid import UUID

from django.apps import AppConfig


class PlansConfig(AppConfig):
    name = "console.plans"

    def ready(self) -> None:
        from console.jobs import hooks
        from console.plans.models import PlanFile
        from console.plans.retries import APPLYING, require_retry_makes_sense, retried_plan
        from console.plans.services import apply_by_itself, spend
        from console.vault import SEALED_FIELDS, SealedField
        from runner.protocol import JobType

        for type in APPLYING:
            hooks.before_start[type].append(spend)
            hooks.before_retry[type].append(require_retry_makes_sense)
        hooks.on_success[JobType.PLAN].append(apply_by_itself)
        hooks.claim_fields += [plan_reference, retried_plan]
        for field, kind in (("sealed_file", "plan-file"), ("sealed_json", "plan-json")):
            SEALED_FIELDS.append(SealedField(PlanFile, field, partial(_plan_context, kind)))


def _plan_context(kind: str, files: Any) -> str:
    return f"{kind}:{files.plan_id}"


def plan_reference(job: Any, claim_id: UUID) -> dict[str, Any]:
    """Describe, for a claim, the plan that its job applies."""
    from runner.protocol import PlanReference

    if job.plan is None:
        return {}
    return {
        "plan": PlanReference(
            plan_id=str(job.plan.pk),
            file_sha256=job.plan.file_sha256,
            snapshot_hash=job.plan.snapshot_hash,
            state_lineage=job.plan.state_lineage,
            state_serial=job.plan.state_serial,
            provider_lock=job.plan.files.provider_lock,
            provider_lock_sha256=job.plan.provider_lock_sha256,
            terraform_version=job.plan.terraform_version,
        )
    }
