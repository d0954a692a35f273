"""The answer to "why is this waiting?": for every active job, one sentence and the remedy."""

from django.db.models import Q, Sum
from django.utils import timezone

from console.accounts.models import Installation
from console.jobs import hooks
from console.jobs.hooks import Waiting
from console.jobs.lifecycle import QUEUED
from console.jobs.models import Job, JobClaim
from console.runners.models import Runner, RunnerStatus
from runner.protocol import CancelReason

#: A healthy runner sends a heartbeat every two seconds; a longer silence is shown.
SILENT_SECONDS = 10


def why_waiting(job: Job) -> Waiting | None:
    """Return why the job waits; None when it is final or progresses."""
    if job.is_final:
        return None
    for hook in hooks.waiting_reasons:
        if reason := hook(job):
            return reason
    return _why_queued(job) if job.status == QUEUED else _why_slow(job)


def _why_queued(job: Job) -> Waiting:
    now = timezone.now()
    if job.run_after > now:
        return Waiting(
            f"Retry {job.retry_count} of {job.max_retries} at {job.run_after:%H:%M:%S} UTC.",
            "Wait, or cancel it.",
        )
    if job.organization.draining_since or Installation.objects.filter(draining_since__isnull=False).exists():
        return Waiting("Draining: no jobs are started.", "Wait until an admin ends the drain.")
    return _why_unclaimed(job)


def _why_unclaimed(job: Job) -> Waiting:
    runners = Runner.objects.filter(pools=job.pool)
    if not runners.exists():
        return Waiting(f"No runner serves pool {job.pool.name}.", "Add a runner to this pool.")
    online = runners.filter(status=RunnerStatus.ONLINE)
    if not online.exists():
        newest = runners.order_by("-last_contact_at").values_list("name", flat=True).first()
        return Waiting(f"No runner is online in pool {job.pool.name}.", f"Start {newest}, or add a runner.")
    able = online.filter(types__contains=[job.type], draining_since=None)
    if not able.exists():
        return Waiting(
            f"No online runner in pool {job.pool.name} accepts {job.type} jobs.",
            f"Add a runner that accepts {job.type} jobs, or end a runner's drain.",
        )
    slots = able.aggregate(slots=Sum("slots"))["slots"] or 0
    busy = JobClaim.objects.filter(runner__in=able).count()
    ahead = _ahead(job)
    if busy < slots:
        return Waiting(
            f"Starting: {_count(slots - busy, 'free slot')} in pool {job.pool.name}{_queue(ahead)}."
        )
    full = (
        f"The only slot in pool {job.pool.name} is"
        if slots == 1
        else f"All {slots} slots in pool {job.pool.name} are"
    )
    return Waiting(f"{full} busy{_queue(ahead)}.", "Wait, or add a runner.")


def _why_slow(job: Job) -> Waiting | None:
    claim = JobClaim.objects.select_related("runner").filter(job=job).first()
    if claim is None:
        return None  # it has just ended
    now = timezone.now()
    silent = (now - claim.heartbeat_at).total_seconds()
    remaining = (claim.expires_at - now).total_seconds()
    if silent > SILENT_SECONDS:
        expires = f"its lease expires in {remaining:.0f} s" if remaining > 0 else "its lease has expired"
        return Waiting(
            f"Runner {claim.runner.name} has been silent for {silent:.0f} s; {expires}.",
            f"Check runner {claim.runner.name}; the job is taken back when the lease expires.",
        )
    if job.cancel_requested_at is None:
        return None
    seconds = (now - job.cancel_requested_at).total_seconds()
    reason = (
        "The job timed out"
        if job.cancel_reason == CancelReason.TIMEOUT
        else f"{job.cancelled_by} cancelled it"
    )
    return Waiting(
        f"{reason} {seconds:.0f} s ago; Terraform is finishing its current operations.",
        "Wait, or force cancel: Terraform may then still be running on the runner.",
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _queue(ahead: int) -> str:
    return f"; {_count(ahead, 'job')} ahead" if ahead else ""


def _ahead(job: Job) -> int:
    earlier = Q(priority__gt=job.priority) | Q(priority=job.priority, pk__lt=job.pk)
    return Job.objects.filter(earlier, pool=job.pool, status=QUEUED, run_after__lte=timezone.now()).count()
