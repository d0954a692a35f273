"""Access to a job: each function names the right that it grants."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from console.accounts.access import organization_to_operate, organization_to_view
from console.accounts.models import Organization
from console.errors import NotFound
from console.jobs.models import Job


def job_to_view(user: Any, org_slug: str, number: int) -> Job:
    return _job(organization_to_view(user, org_slug), number)


def job_to_operate(user: Any, org_slug: str, number: int) -> Job:
    return _job(organization_to_operate(user, org_slug), number)


def job_to_view_by_id(user: Any, job_id: UUID) -> Job:
    """Return the job with this id, for the API and the sockets. Another organization's job is not found."""
    job = _jobs().filter(pk=job_id).first()
    if job is None:
        raise NotFound
    organization_to_view(user, job.organization.slug)
    return job


def job_to_operate_by_id(user: Any, job_id: UUID) -> Job:
    job = job_to_view_by_id(user, job_id)
    organization_to_operate(user, job.organization.slug)
    return job


def _job(organization: Organization, number: int) -> Job:
    job = _jobs().filter(organization=organization, number=number).first()
    if job is None:
        raise NotFound
    return job


def _jobs() -> QuerySet[Job]:
    return Job.objects.select_related(
        "organization", "spec", "pool", "requested_by", "cancelled_by", "plan"
    ).defer("config_snapshot")
