"""The dashboard, the list of Specs, search, and the first-run guide."""

from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import urlencode

from console.accounts.access import organization_to_operate, organization_to_view
from console.overview.dashboard import dashboard_of, running_jobs
from console.overview.guide import close_guide, guide_of, skip_cloud
from console.overview.search import search as search_for
from console.overview.spec_list import SORTS, Filters, environments_of, page_of_specs
from console.pages import PageRequest, action, is_fragment, signed_in
from console.plans.archiving import archive_spec, unarchive_spec
from console.plans.inventory import may_have_resources
from console.plans.selectors import plans_of
from console.state.selectors import newest_version
from console.whole_numbers import whole_number
from specs.access import spec_to_administer, spec_to_view

STANDINGS = ("deployed", "destroyed", "never")


@signed_in
def dashboard(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    guide = guide_of(organization)
    context = {
        "organization": organization,
        "board": dashboard_of(organization, request.user),
        "guide": None if guide.complete or guide.closed else guide,
    }
    return render(request, "overview/dashboard.html", context)


@signed_in
def running(request: PageRequest, org: str) -> HttpResponse:
    """What runs now and how far it is; asked for again while something runs."""
    organization = organization_to_view(request.user, org)
    context = {"running": running_jobs(organization), "organization": organization}
    return render(request, "overview/_running.html", context)


@signed_in
def specs(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    filters = _filters(request)
    chosen = _chosen(filters)
    found = page_of_specs(organization, filters, after=request.GET.get("after", ""))
    context = {
        "rows": found.rows,
        "filters": filters,
        "chosen": chosen,
        "older": urlencode({**chosen, "after": found.next_after}) if found.next_after else "",
        "first": urlencode(chosen),
        "paged": "after" in request.GET,
        "environments": environments_of(organization),
        "standings": [(one, _query(chosen, standing=one)) for one in ("", *STANDINGS)],
        "sorts": [(one, _query(chosen, sort=one)) for one in SORTS],
    }
    return render(request, "specs/specs.html", context)


@signed_in
def plans(request: PageRequest, org: str, spec: str) -> HttpResponse:
    """Every plan of a Spec, the newest first, and what became of each."""
    shown = spec_to_view(request.user, org, spec)
    before = request.GET.get("before", "")
    found = plans_of(shown, before=whole_number(before))
    context = {
        "spec": shown,
        "tab": "plans",
        "plans": found.plans,
        "older": found.next_before,
        "paged": before,
    }
    return render(request, "specs/plans.html", context)


@signed_in
def resources(request: PageRequest, org: str, spec: str) -> HttpResponse:
    """The resources in the newest state; where there is none yet, what the page of state says about that."""
    newest = newest_version(spec_to_view(request.user, org, spec))
    return redirect("state-version", org, spec, newest.serial) if newest else redirect("state", org, spec)


@signed_in
def search(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    text = request.GET.get("q", "")
    context = {"text": text.strip(), "found": search_for(organization, text), "organization": organization}
    template = "overview/_found.html" if is_fragment(request) else "overview/search.html"
    return render(request, template, context)


@signed_in
def start(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    return render(
        request, "overview/start.html", {"organization": organization, "guide": guide_of(organization)}
    )


@action
def skip(request: PageRequest, org: str) -> str:
    organization = organization_to_operate(request.user, org)
    skip_cloud(organization=organization, skip=request.POST.get("skip") != "0")
    return resolve_url("start", org)


@action
def close(request: PageRequest, org: str) -> str:
    close_guide(organization=organization_to_operate(request.user, org))
    return resolve_url("dashboard", org)


def archive(request: PageRequest, org: str, spec: str) -> HttpResponseBase:
    """The question on GET, the deed on POST."""
    answer = archive_it if request.method == "POST" else ask_archive
    return answer(request, org, spec)


@signed_in
def ask_archive(request: PageRequest, org: str, spec: str) -> HttpResponse:
    asked = spec_to_administer(request.user, org, spec)
    template = "specs/_archive.html" if is_fragment(request) else "specs/archive.html"
    return render(request, template, {"spec": asked, "standing": may_have_resources(asked)})


@action
def archive_it(request: PageRequest, org: str, spec: str) -> str:
    asked = spec_to_administer(request.user, org, spec)
    confirmation = request.POST.get("confirmation", "")
    archived = archive_spec(spec=asked, confirmation=confirmation, archived_by=request.user)
    return resolve_url("spec", org, archived.slug)


@action
def unarchive(request: PageRequest, org: str, spec: str) -> str:
    archived = spec_to_administer(request.user, org, spec)
    return resolve_url("spec", org, unarchive_spec(spec=archived, unarchived_by=request.user).slug)


def _filters(request: PageRequest) -> Filters:
    query = request.GET
    return Filters(
        text=query.get("q", "").strip()[:100],
        environment=query.get("environment", "")[:40],
        standing=query.get("standing", "") if query.get("standing") in STANDINGS else "",
        archived=query.get("archived") == "1",
        sort=query.get("sort", "name") if query.get("sort") in SORTS else "name",
    )


def _chosen(filters: Filters) -> dict[str, str]:
    given = {
        "q": filters.text,
        "environment": filters.environment,
        "standing": filters.standing,
        "archived": "1" if filters.archived else "",
        "sort": filters.sort if filters.sort != "name" else "",
    }
    return {name: text for name, text in given.items() if text}


def _query(chosen: dict[str, str], **changed: Any) -> str:
    wanted = {**chosen, **changed}
    if wanted.get("sort") == "name":
        wanted["sort"] = ""
    return urlencode({name: text for name, text in wanted.items() if text})
