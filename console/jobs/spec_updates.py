"""The traces that a successful job leaves on its Spec."""

from console.jobs.hooks import JobEnd
from specs.services import record_deploy, record_destroy


def store_outputs(end: JobEnd) -> None:
    """Store the outputs of a DEPLOY on its Spec; the values of sensitive ones are never in the result."""
    outputs = end.result.get("outputs")
    if end.job.spec is not None:
        record_deploy(
            spec=end.job.spec,
            outputs=outputs if isinstance(outputs, dict) else {},
            sensitive_values=dict(end.sensitive_outputs),
        )


def mark_destroyed(end: JobEnd) -> None:
    if end.job.spec is not None:
        record_destroy(spec=end.job.spec)
