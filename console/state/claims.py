"""The state in a claim: its address, and the attempt's own token for it."""

from typing import Any
from uuid import UUID

from django.conf import settings

from console.jobs.models import Job
from console.state.tokens import token_for
from console.state.wire import ATTEMPT_USER
from runner.protocol import StateAccess


def state_access(job: Job, claim_id: UUID) -> dict[str, Any]:
    """Return the claim's `state` for a Spec whose state is stored here: see `hooks.ClaimFields`."""
    if job.spec_id is None or job.config_snapshot.get("backend", {}).get("kind", "console") != "console":
        return {}
    address = f"{settings.SLIPWAY_PUBLIC_URL}/api/state/{job.spec_id}"
    return {
        "state": StateAccess(
            address=address,
            lock_address=f"{address}/lock",
            username=ATTEMPT_USER,
            password=token_for(claim_id),
        )
    }
