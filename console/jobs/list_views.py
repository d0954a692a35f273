"""The page of all jobs, and the filters that a person keeps for it."""

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render, resolve_url
from django.utils.http import urlencode

from console.accounts.access import organization_to_view
from console.accounts.models import SavedFilter
from console.accounts.services import save_filter as keep_filter
from console.errors import NotFound
from console.jobs.listing import Filters, page_of_jobs
from console.pages import PageRequest, action, signed_in
from console.whole_numbers import whole_number
from runner.protocol import JobStatus, JobType

PAGE = "jobs"
#: What jobs there can be today; deploying runners is not among it yet.
LISTED_TYPES = [type for type in JobType if not type.endswith("_WORKER")]
FIELDS = ("type", "status", "spec", "by", "runner")


@signed_in
def jobs(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    chosen = _chosen(request)
    before = whole_number(request.GET.get("before"), digits=18)
    found = page_of_jobs(organization, Filters(**chosen), before=before)
    context = {
        "found": found,
        "jobs": found.jobs,
        "chosen": chosen,
        "query": urlencode(chosen),
        "older": _query(chosen, before=str(found.next_before)) if found.next_before else "",
        "before": before,
        "mine": urlencode({"by": request.user.get_username()}),
        "types": [(one, _query(chosen, type=one)) for one in ("", *LISTED_TYPES)],
        "statuses": [(one, _query(chosen, status=one)) for one in ("", *JobStatus)],
        "saved": SavedFilter.objects.filter(user=request.user, organization=organization, page=PAGE).order_by(
            "name"
        ),
    }
    return render(request, "jobs/jobs.html", context)


@action
def save_filter(request: PageRequest, org: str) -> str:
    organization = organization_to_view(request.user, org)
    chosen = {name: request.POST.get(name, "").strip() for name in FIELDS}
    query = urlencode({name: text for name, text in chosen.items() if text})
    name = request.POST.get("name", "")
    keep_filter(user=request.user, organization=organization, page=PAGE, name=name, query=query)
    return f"{resolve_url('jobs', org)}?{query}"


@action
def remove_filter(request: PageRequest, org: str, filter_id: UUID) -> str:
    organization = organization_to_view(request.user, org)
    removed, _ = SavedFilter.objects.filter(
        pk=filter_id, user=request.user, organization=organization
    ).delete()
    if not removed:
        raise NotFound
    return resolve_url("jobs", org)


def _chosen(request: PageRequest) -> dict[str, str]:
    given = {name: request.GET.get(name, "").strip()[:150] for name in FIELDS}
    if given["type"] not in set(JobType):
        given["type"] = ""
    if given["status"] not in set(JobStatus):
        given["status"] = ""
    return {name: text for name, text in given.items() if text}


def _query(chosen: dict[str, str], **changed: str) -> str:
    return urlencode({name: text for name, text in {**chosen, **changed}.items() if text})
