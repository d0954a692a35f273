"""The revisions of a Spec: list, compare, restore, preview."""

from django.http import HttpResponse
from django.shortcuts import render, resolve_url

from console.errors import BadInput
from console.inputs import whole_number
from console.jobs.services import request_plan
from console.pages.frame import PageRequest, action, signed_in
from console.pages.specs.frame import tab_context
from specs import access, selectors, services
from specs.comparison import compare

PAGE_SIZE = 50


@signed_in
def revisions(request: PageRequest, org: str, spec: str) -> HttpResponse:
    shown = access.spec_to_view(request.user, org, spec)
    found = selectors.revisions_of(shown, before=whole_number(request.GET.get("before")), limit=PAGE_SIZE + 1)
    context = {
        **tab_context(shown, "revisions"),
        "revisions": found[:PAGE_SIZE],
        "older": found[PAGE_SIZE - 1].number if len(found) > PAGE_SIZE else None,
        "newest": selectors.current_number(shown),
    }
    return render(request, "specs/revisions.html", context)


@signed_in
def comparison(request: PageRequest, org: str, spec: str) -> HttpResponse:
    shown = access.spec_to_view(request.user, org, spec)
    older, newer = whole_number(request.GET.get("from")), whole_number(request.GET.get("to"))
    if older is None or newer is None:
        raise BadInput("Choose two revisions to compare.", field="from")
    found = compare(selectors.revision_of(shown, older), selectors.revision_of(shown, newer))
    return render(request, "specs/comparison.html", {**tab_context(shown, "revisions"), "comparison": found})


@action
def restore(request: PageRequest, org: str, spec: str, number: int) -> str:
    restored = access.spec_to_manage(request.user, org, spec)
    services.restore_revision(spec=restored, number=number, author=request.user)
    return resolve_url("spec-revisions", org, spec)


@action
def look_at(request: PageRequest, org: str, spec: str, number: int) -> str:
    """A look at what some revision would do."""
    asked = access.spec_to_plan(request.user, org, spec)
    job = request_plan(spec=asked, requested_by=request.user, revision=number)
    return resolve_url("job", org, job.number)
