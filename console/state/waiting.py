"""The state's lock as a reason why a job waits."""

from console.jobs.hooks import Waiting
from console.jobs.models import Job, JobClaim
from console.state.abandoned import abandoned_locks
from console.state.locks import holder_name, operation_of
from console.state.models import StateLock


def why_locked(job: Job) -> Waiting | None:
    """Explain a wait for a lock that somebody other than the job's own attempt holds."""
    if job.spec_id is None:
        return None
    lock = (
        StateLock.objects.select_related("spec__organization", "job", "user")
        .filter(spec_id=job.spec_id)
        .first()
    )
    if lock is None or _is_its_own(job, lock):
        return None
    reason = (
        f"The state of {lock.spec.name} is locked by {holder_name(lock)} since "
        f"{lock.locked_at:%Y-%m-%d %H:%M:%S} UTC, for {operation_of(lock)}."
    )
    if lock in abandoned_locks():
        return Waiting(
            f"{reason} That attempt is over and will not give it back.",
            "Look at what it did, then force-unlock on the State page.",
        )
    return Waiting(reason, "Wait for it, or ask the person who holds it.")


def _is_its_own(job: Job, lock: StateLock) -> bool:
    return lock.claim_id is not None and JobClaim.objects.filter(job=job, claim_id=lock.claim_id).exists()
