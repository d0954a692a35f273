"""The list of jobs: filtered, in pages that cost the same however many jobs there are."""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, QuerySet

from console.accounts.models import Organization
from console.jobs.lifecycle import ACTIVE_STATUSES
from console.jobs.models import Attempt, Job

PAGE_SIZE = 50
#: One page looks through at most this many jobs. Numbers have no gaps, so that a stretch of numbers is one of
#: jobs, and no further index has to be written at each job's every move.
LOOKED_THROUGH = 20_000


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of the list; an empty one does not filter."""

    type: str = ""
    status: str = ""
    spec: str = ""
    by: str = ""
    runner: str = ""

    @property
    def narrow(self) -> bool:
        return any((self.type, self.status, self.by, self.runner))


@dataclass(frozen=True, slots=True)
class JobPage:
    jobs: list[Job]
    #: The number that the next page begins below; none at the end.
    next_before: int | None
    #: The number down to which this page looked, where it is not full and there are older jobs.
    looked_down_to: int | None = None


def page_of_jobs(organization: Organization, filters: Filters, *, before: int | None = None) -> JobPage:
    """The newest jobs that match, from below the number `before`."""
    top = min(before, organization.last_job_number + 1) if before else organization.last_job_number + 1
    floor = _floor(filters, top)
    matches = _matching(organization, filters).filter(number__lt=top, number__gte=floor)
    jobs = list(matches.order_by("-number")[: PAGE_SIZE + 1])
    _name_runners(jobs)
    if len(jobs) > PAGE_SIZE:
        return JobPage(jobs[:PAGE_SIZE], next_before=jobs[PAGE_SIZE - 1].number)
    if floor > 1:
        return JobPage(jobs, next_before=floor, looked_down_to=floor)
    return JobPage(jobs, next_before=None)


def _floor(filters: Filters, top: int) -> int:
    """The lowest number to search: active jobs and a Spec's jobs have indexes, other filters scan."""
    by_index = filters.spec or filters.status in ACTIVE_STATUSES or not filters.narrow
    return 1 if by_index else max(1, top - LOOKED_THROUGH)


def _matching(organization: Organization, filters: Filters) -> "QuerySet[Job]":
    jobs = Job.objects.filter(organization=organization)
    if filters.type:
        jobs = jobs.filter(type=filters.type)
    if filters.status:
        jobs = jobs.filter(status=filters.status)
    if filters.spec:
        jobs = jobs.filter(spec__slug=filters.spec)
    if filters.by:
        jobs = jobs.filter(requested_by__username=filters.by)
    if filters.runner:
        jobs = jobs.filter(attempts__runner__name=filters.runner, attempts__number=F("attempt_count"))
    matches = jobs.select_related("organization", "spec", "identity", "requested_by")
    return matches.defer("config_snapshot", "result")


def _name_runners(jobs: list[Job]) -> None:
    """The runner of each job's last attempt, in one statement."""
    numbers = {job.pk: job.attempt_count for job in jobs if job.attempt_count}
    attempts = Attempt.objects.filter(job__in=numbers).values_list("job_id", "number", "runner__name")
    names: dict[UUID, str] = {job_id: name for job_id, number, name in attempts if number == numbers[job_id]}
    for job in jobs:
        job.runner_name = names.get(job.pk, "")
