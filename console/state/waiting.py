"""Why a job waits, as far as the state's lock is the reason."""

from console.jobs.hooks import Waiting
from console.jobs.models import Job, JobClaim
from console.state.locks import holder_name, operation_of
from console.state.lost import abandoned_locks
from console.state.models import StateLock


def why_locked(job: Job) -> Waiting | None:
    """Somebody other than the job's own attempt holds the lock that its Terraform will ask for."""
    if job.spec_id is None:
        return None
    held = (
        StateLock.objects.select_related("spec__organization", "job", "user")
        .filter(spec_id=job.spec_id)
        .first()
    )
    if held is None or _is_its_own(job, held):
        return None
    reason = (
        f"The state of {held.spec.name} is locked by {holder_name(held)} since "
        f"{held.locked_at:%Y-%m-%d %H:%M:%S} UTC, for {operation_of(held)}."
    )
    if held in abandoned_locks():
        return Waiting(
            f"{reason} That attempt is over and will not give it back.",
            "Look at what it did, then force-unlock on the State page.",
        )
    return Waiting(reason, "Wait for it, or ask whoever holds it.")


def _is_its_own(job: Job, held: StateLock) -> bool:
    return held.claim_id is not None and JobClaim.objects.filter(job=job, claim_id=held.claim_id).exists()
