"""What a successful job leaves on its spec."""

from typing import Any

from console.jobs.models import Job
from specs.services import record_deploy, record_destroy


def keep_outputs(job: Job, result: dict[str, Any]) -> None:
    """Outputs come with the job's result, the values of sensitive ones beside it and never with it."""
    outputs, sensitive = result.get("outputs"), result.get("sensitive_outputs")
    if job.spec is not None:
        record_deploy(
            spec=job.spec,
            outputs=outputs if isinstance(outputs, dict) else {},
            sensitive_values=sensitive if isinstance(sensitive, dict) else {},
        )


def mark_destroyed(job: Job, result: dict[str, Any]) -> None:
    if job.spec is not None:
        record_destroy(spec=job.spec)
