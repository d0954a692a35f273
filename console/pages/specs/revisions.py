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
def revisions(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    spec = access.spec_to_view(request.user, org, spec_slug)
    revisions = selectors.revisions_of(
        spec, before=whole_number(request.GET.get("before")), limit=PAGE_SIZE + 1
    )
    context = {
        **tab_context(spec, "revisions"),
        "revisions": revisions[:PAGE_SIZE],
        "older": revisions[PAGE_SIZE - 1].number if len(revisions) > PAGE_SIZE else None,
        "newest": selectors.current_number(spec),
    }
    return render(request, "specs/revisions.html", context)


@signed_in
def comparison(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    spec = access.spec_to_view(request.user, org, spec_slug)
    older, newer = whole_number(request.GET.get("from")), whole_number(request.GET.get("to"))
    if older is None or newer is None:
        raise BadInput("Choose two revisions to compare.", field="from")
    comparison = compare(selectors.revision_of(spec, older), selectors.revision_of(spec, newer))
    return render(
        request, "specs/comparison.html", {**tab_context(spec, "revisions"), "comparison": comparison}
    )


@action
def restore(request: PageRequest, org: str, spec_slug: str, number: int) -> str:
    spec = access.spec_to_manage(request.user, org, spec_slug)
    services.restore_revision(spec=spec, number=number, author=request.user)
    return resolve_url("spec-revisions", org, spec_slug)


@action
def look_at(request: PageRequest, org: str, spec_slug: str, number: int) -> str:
    """A look at what some revision would do."""
    spec = access.spec_to_plan(request.user, org, spec_slug)
    job = request_plan(spec=spec, requested_by=request.user, revision=number)
    return resolve_url("job", org, job.number)
