"""«Why is this waiting?»: for every job that is not final, one sentence and the remedy."""

from django.db.models import Q, Sum
from django.utils import timezone

from console.accounts.models import Installation
from console.jobs import hooks
from console.jobs.hooks import Waiting
from console.jobs.lifecycle import QUEUED
from console.jobs.models import Job, JobClaim
from console.runners.models import Runner, RunnerStatus
from runner.protocol import CancelReason

#: A healthy runner beats every two seconds; this much silence is worth telling.
SILENT_SECONDS = 10


def why_waiting(job: Job) -> Waiting | None:
    """None when the job is final, or is getting on."""
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
        return Waiting("No jobs are handed out: draining.", "Wait until an admin ends the drain.")
    return _why_unclaimed(job)


def _why_unclaimed(job: Job) -> Waiting:
    runners = Runner.objects.filter(pools=job.pool)
    if not runners.exists():
        return Waiting(f"No runner serves pool {job.pool.name}.", "Add a runner to this pool.")
    online = runners.filter(status=RunnerStatus.ONLINE)
    if not online.exists():
        newest = runners.order_by("-last_contact_at").values_list("name", flat=True).first()
        return Waiting(f"No runner online in pool {job.pool.name}.", f"Start {newest}, or add a runner.")
    able = online.filter(types__contains=[job.type], draining_since=None)
    if not able.exists():
        return Waiting(
            f"No runner online in pool {job.pool.name} takes {job.type} jobs now.",
            f"Add a runner that runs {job.type}, or end the drain of one.",
        )
    slots = able.aggregate(slots=Sum("slots"))["slots"] or 0
    busy = JobClaim.objects.filter(runner__in=able).count()
    ahead = _ahead(job)
    if busy >= slots:
        return Waiting(
            f"All {slots} slots of pool {job.pool.name} are busy, and {ahead} jobs are ahead.",
            "Wait, or add a runner.",
        )
    return Waiting(
        f"About to be claimed: {slots - busy} slots are free in pool {job.pool.name}, {ahead} jobs are ahead."
    )


def _why_slow(job: Job) -> Waiting | None:
    claim = JobClaim.objects.select_related("runner").filter(job=job).first()
    if claim is None:
        return None  # it has just ended
    now = timezone.now()
    silent = (now - claim.heartbeat_at).total_seconds()
    left = (claim.expires_at - now).total_seconds()
    if silent > SILENT_SECONDS:
        expires = f"its lease expires in {left:.0f} s" if left > 0 else "its lease has expired"
        return Waiting(
            f"Runner {claim.runner.name} has been silent for {silent:.0f} s; {expires}.",
            f"Look at runner {claim.runner.name}; the job is taken back when the lease ends.",
        )
    if job.cancel_requested_at is None:
        return None
    asked = (now - job.cancel_requested_at).total_seconds()
    who = "The timeout" if job.cancel_reason == CancelReason.TIMEOUT else str(job.cancelled_by)
    return Waiting(
        f"{who} asked it to stop {asked:.0f} s ago; Terraform is finishing what it began.",
        "Wait, or force-cancel: Terraform may then still be running on the runner.",
    )


def _ahead(job: Job) -> int:
    earlier = Q(priority__gt=job.priority) | Q(priority=job.priority, pk__lt=job.pk)
    return Job.objects.filter(earlier, pool=job.pool, status=QUEUED, run_after__lte=timezone.now()).count()
