"""The token of a job's private Git source, for its claim: sealed until then, and in no snapshot."""

from typing import Any
from uuid import UUID

from console.jobs.models import Job
from specs.variables import open_secret


def source_access(job: Job, claim_id: UUID) -> dict[str, Any]:
    """Return the claim's `source_token` for a private repository: see `hooks.ClaimFields`."""
    credential = (job.config_snapshot.get("source") or {}).get("credential")
    return {"source_token": open_secret(credential)} if credential else {}
