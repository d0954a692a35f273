"""Reading jobs and their attempts."""

from django.db.models import QuerySet

from console.audit.models import AuditEvent
from console.jobs.lifecycle import ACTIVE_STATUSES
from console.jobs.models import Attempt, Job, JobClaim
from runner.protocol import JobStatus, JobType
from specs.models import Spec


def active_job_of(spec: Spec) -> Job | None:
    return _for_lists().filter(spec=spec, status__in=ACTIVE_STATUSES).first()


def latest_jobs_of(spec: Spec, limit: int = 10) -> list[Job]:
    return list(_for_lists().filter(spec=spec).order_by("-id")[:limit])


def attempts_of(job: Job) -> list[Attempt]:
    return list(job.attempts.select_related("runner").order_by("number"))


def lease_of(job: Job) -> JobClaim | None:
    """Return the lease of the attempt that runs now."""
    return JobClaim.objects.filter(job=job).first()


def trail_of(job: Job, *, limit: int = 100) -> list[AuditEvent]:
    """Return everything that people, runners and the console did to the job, oldest first."""
    return list(AuditEvent.objects.filter(target_id=job.pk).order_by("id")[:limit])


def outputs_are_current(job: Job) -> bool:
    """Return whether the Spec's outputs are still this job's: only then can a sensitive one be revealed."""
    if job.type != JobType.DEPLOY or job.status != JobStatus.SUCCESS or job.spec_id is None:
        return False
    later = Job.objects.filter(spec_id=job.spec_id, pk__gt=job.pk, status=JobStatus.SUCCESS)
    return not later.filter(type__in=(JobType.DEPLOY, JobType.DESTROY)).exists()


def _for_lists() -> QuerySet[Job]:
    return Job.objects.select_related("organization", "spec", "requested_by").defer(
        "config_snapshot", "result"
    )
