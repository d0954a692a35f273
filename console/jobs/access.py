"""Access to a job: each function names the right that it grants."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from console.accounts.access import require_right
from console.accounts.rights import Right
from console.errors import NotFound
from console.jobs.models import Job


def job_to_view(user: Any, org_slug: str, number: int) -> Job:
    return _job(user, org_slug, number, Right.SEE)


def job_to_cancel(user: Any, org_slug: str, number: int) -> Job:
    return _job(user, org_slug, number, Right.CANCEL)


def job_to_retry(user: Any, org_slug: str, number: int) -> Job:
    job = job_to_view(user, org_slug, number)
    require_right(user, org_slug, right_to_retry(job))
    return job


def job_to_read_secrets(user: Any, org_slug: str, number: int) -> Job:
    """Download a state that an attempt of the job could not save."""
    return _job(user, org_slug, number, Right.READ_SECRETS)


def job_to_view_by_id(user: Any, job_id: UUID) -> Job:
    """Return the job with this id, for the API and the sockets. Another organization's job is not found."""
    return _job_by_id(user, job_id, Right.SEE)


def job_to_cancel_by_id(user: Any, job_id: UUID) -> Job:
    return _job_by_id(user, job_id, Right.CANCEL)


def job_to_retry_by_id(user: Any, job_id: UUID) -> Job:
    job = job_to_view_by_id(user, job_id)
    require_right(user, job.organization.slug, right_to_retry(job))
    return job


def job_to_read_secrets_by_id(user: Any, job_id: UUID) -> Job:
    return _job_by_id(user, job_id, Right.READ_SECRETS)


def right_to_retry(job: Job) -> Right:
    """A retry needs the right that its first request needed."""
    return Right.APPLY if job.kind.changes_infrastructure else Right.PLAN


def _job(user: Any, org_slug: str, number: int, right: Right) -> Job:
    organization = require_right(user, org_slug, right)
    job = _jobs().filter(organization=organization, number=number).first()
    if job is None:
        raise NotFound
    return job


def _job_by_id(user: Any, job_id: UUID, right: Right) -> Job:
    job = _jobs().filter(pk=job_id).first()
    if job is None:
        raise NotFound
    require_right(user, job.organization.slug, right)
    return job


def _jobs() -> QuerySet[Job]:
    return Job.objects.select_related(
        "organization", "spec", "pool", "requested_by", "cancelled_by", "plan"
    ).defer("config_snapshot")
