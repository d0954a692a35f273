"""The page of a job and its actions, and the list of all jobs."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render, resolve_url
from django.utils.http import urlencode

from console.accounts.access import organization_to_view
from console.accounts.models import SavedFilter
from console.accounts.services import save_filter as keep_filter
from console.errors import NotFound
from console.identities.job_credentials import credentials_of
from console.inputs import whole_number
from console.jobs import access, services
from console.jobs.errored_states import errored_states_of, open_errored_state
from console.jobs.export import export_job
from console.jobs.log.selectors import last_log_seq, log_completeness, log_text
from console.jobs.log.stream import plain_text
from console.jobs.models import Job
from console.jobs.selectors import attempts_of, lease_of, outputs_are_current, trail_of
from console.jobs.types import KINDS
from console.jobs.waiting import why_waiting
from console.pages.frame import PageRequest, action, signed_in
from console.pages.selectors.jobs import Filters, page_of_jobs
from console.pages.selectors.resources import first_resources
from console.plans.pictures import picture_behind
from runner.protocol import JobStatus, JobType

PAGE = "jobs"


FIELDS = ("type", "status", "spec", "by", "runner")


@signed_in
def jobs(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    filters = _filters_in(request)
    before = whole_number(request.GET.get("before"), digits=18)
    page = page_of_jobs(organization, Filters(**filters), before=before)
    context = {
        "found": page,
        "jobs": page.jobs,
        "chosen": filters,
        "query": urlencode(filters),
        "older": _query(filters, before=str(page.next_before)) if page.next_before else "",
        "before": before,
        "mine": urlencode({"by": request.user.get_username()}),
        "types": [
            (choice, _query(filters, type=choice))
            for choice in ("", *(type for type, kind in KINDS.items() if kind.is_listed))
        ],
        "statuses": [(choice, _query(filters, status=choice)) for choice in ("", *JobStatus)],
        "saved": SavedFilter.objects.filter(user=request.user, organization=organization, page=PAGE).order_by(
            "name"
        ),
    }
    return render(request, "jobs/jobs.html", context)


@action
def save_filter(request: PageRequest, org: str) -> str:
    organization = organization_to_view(request.user, org)
    filters = {name: request.POST.get(name, "").strip() for name in FIELDS}
    query = urlencode({name: text for name, text in filters.items() if text})
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


#: More rows than this arrive by the log's events instead of with the page.
MAX_FIRST_RESOURCES = 300


@signed_in
def job(request: PageRequest, org: str, number: int) -> HttpResponse:
    job = access.job_to_view(request.user, org, number)
    context = {
        **_header(job),
        "phases": _phases(job),
        "resources": first_resources(job, limit=MAX_FIRST_RESOURCES),
        "resource_count": job.plan.change_count if job.plan else 0,
    }
    return render(request, "jobs/job.html", context)


@signed_in
def header(request: PageRequest, org: str, number: int) -> HttpResponse:
    """The part of the page that is fetched again when the socket says that the job changed."""
    return render(request, "jobs/_live.html", _header(access.job_to_view(request.user, org, number)))


@signed_in
def export(request: PageRequest, org: str, number: int) -> HttpResponse:
    """Everything that is known about the job, but for its log, which has an address of its own."""
    job = access.job_to_view(request.user, org, number)
    answer = HttpResponse(export_job(job), content_type="application/json")
    answer["Content-Disposition"] = f'attachment; filename="{org}-job-{number}.json"'
    return answer


@signed_in
def errored_state(request: PageRequest, org: str, number: int, claim_id: UUID) -> HttpResponse:
    """The state that Terraform could not save. It may hold secrets: operators only, and on record."""
    job = access.job_to_read_secrets(request.user, org, number)
    body = open_errored_state(job=job, claim_id=claim_id, opened_by=request.user)
    answer = HttpResponse(body, content_type="application/octet-stream")
    answer["Content-Disposition"] = 'attachment; filename="errored.tfstate"'
    return answer


@signed_in
def log(request: PageRequest, org: str, number: int) -> StreamingHttpResponse:
    job = access.job_to_view(request.user, org, number)
    answer = plain_text(log_text(job))
    answer["Content-Disposition"] = f'inline; filename="{org}-job-{number}.log.txt"'
    return answer


@signed_in
def job_graph(request: PageRequest, org: str, number: int) -> HttpResponse:
    """The picture of what a job changes; nothing while there is no plan."""
    drawing = picture_behind(access.job_to_view(request.user, org, number))
    if drawing is None:
        return HttpResponse(status=204)
    return render(request, "plans/_graph.html", {"graph": drawing})


@action
def cancel(request: PageRequest, org: str, number: int) -> str:
    job = access.job_to_cancel(request.user, org, number)
    services.cancel_job(job=job, requested_by=request.user, force=request.POST.get("force") == "1")
    return resolve_url("job", org, number)


@action
def retry(request: PageRequest, org: str, number: int) -> str:
    job = access.job_to_retry(request.user, org, number)
    return resolve_url("job", org, services.retry_job(job=job, requested_by=request.user).number)


def _header(job: Job) -> dict[str, Any]:
    attempts = attempts_of(job)
    return {
        "job": job,
        "spec": job.spec,
        "attempts": attempts,
        "runner": attempts[-1].runner if attempts else None,
        "lease": None if job.is_final else lease_of(job),
        "plan_number": _plan_made_by(job),
        "credentials": credentials_of(job, attempts),
        "waiting": why_waiting(job),
        "last_seq": last_log_seq(job),
        "completeness": log_completeness(job, attempts),
        "unsaved": errored_states_of(job),
        "trail": trail_of(job),
        "outputs_are_current": outputs_are_current(job),
        "result_templates": _result_templates(job),
    }


def _result_templates(job: Job) -> list[str]:
    """The result of a type that has a template of its own; else outputs, where the type can have some."""
    default = "jobs/results/outputs.html" if job.kind.changes_infrastructure else "jobs/results/none.html"
    return [f"jobs/results/{job.type.lower()}.html", default]


def _phases(job: Job) -> str:
    """A job with a reviewed plan downloads it, one without plans first. A blueprint may add a last step."""
    phases = job.kind.phases_with_plan if job.plan_id else job.kind.phases
    return f"{phases} {_last_step(job)}".rstrip()


def _last_step(job: Job) -> str:
    """The phase of the blueprint's last step, where the plan makes something of what it is made of."""
    last_step = (job.config_snapshot.get("source") or {}).get("last_step")
    if job.type != JobType.DEPLOY or job.plan is None or not last_step:
        return ""
    making = job.plan.rows.filter(drifted=False, action__in=("create", "update", "replace"))
    is_listed = any(
        address == target or address.startswith((f"{target}[", f"{target}."))
        for address in making.values_list("address", flat=True)
        for target in last_step["addresses"]
    )
    return str(last_step["phase"]) if is_listed else ""


def _plan_made_by(job: Job) -> int | None:
    """The number of the plan that this job made, as a PLAN or as a retry."""
    return Job.objects.filter(pk=job.pk).values_list("produced_plan__number", flat=True).first()


def _filters_in(request: PageRequest) -> dict[str, str]:
    filters = {name: request.GET.get(name, "").strip()[:150] for name in FIELDS}
    if filters["type"] not in set(JobType):
        filters["type"] = ""
    if filters["status"] not in set(JobStatus):
        filters["status"] = ""
    return {name: text for name, text in filters.items() if text}


def _query(filters: dict[str, str], **changed: str) -> str:
    return urlencode({name: text for name, text in {**filters, **changed}.items() if text})
