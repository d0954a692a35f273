"""Destroying what a Spec has made."""

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.jobs.services import request_destroy as queue_destroy
from console.jobs.services import request_plan as queue_plan
from console.pages.frame import PageRequest, action, is_fragment, signed_in
from console.plans.inventory import inventory_of
from specs.access import spec_to_apply, spec_to_plan

#: More addresses than this are counted in the dialog, not listed.
MAX_LISTED = 200


def destroy(request: PageRequest, org: str, spec_slug: str) -> HttpResponseBase:
    """Ask for confirmation on GET; destroy on POST."""
    answer = request_destroy if request.method == "POST" else ask_destroy
    return answer(request, org, spec_slug)


@signed_in
def ask_destroy(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    spec = spec_to_apply(request.user, org, spec_slug)
    inventory = inventory_of(spec)
    template = "specs/_destroy.html" if is_fragment(request) else "specs/destroy.html"
    context = {
        "spec": spec,
        "kept_in": inventory.kept_in,
        "as_of": inventory.as_of,
        "resource_count": len(inventory.addresses),
        "addresses": inventory.addresses[:MAX_LISTED],
        "unlisted": max(0, len(inventory.addresses) - MAX_LISTED),
    }
    return render(request, template, context)


@action
def request_destroy(request: PageRequest, org: str, spec_slug: str) -> str:
    job = queue_destroy(
        spec=spec_to_apply(request.user, org, spec_slug),
        confirmation=request.POST.get("confirmation", ""),
        requested_by=request.user,
    )
    return resolve_url("job", org, job.number)


@action
def plan_destroy(request: PageRequest, org: str, spec_slug: str) -> str:
    """A destroy that is reviewed before it happens."""
    spec = spec_to_plan(request.user, org, spec_slug)
    job = queue_plan(spec=spec, requested_by=request.user, destroy=True)
    return resolve_url("job", org, job.number)
