"""The plan in a claim: what the runner downloads, and checks before it applies."""

from typing import Any
from uuid import UUID

from console.jobs.models import Job
from runner.protocol import PlanReference


def plan_reference(job: Job, claim_id: UUID) -> dict[str, Any]:
    """Return the claim's `plan` for a job that applies a reviewed one: see `hooks.ClaimFields`."""
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
