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


def destroy(request: PageRequest, org: str, spec: str) -> HttpResponseBase:
    """The question on GET, the deed on POST."""
    answer = request_destroy if request.method == "POST" else ask_destroy
    return answer(request, org, spec)


@signed_in
def ask_destroy(request: PageRequest, org: str, spec: str) -> HttpResponse:
    asked = spec_to_apply(request.user, org, spec)
    found = inventory_of(asked)
    template = "specs/_destroy.html" if is_fragment(request) else "specs/destroy.html"
    context = {
        "spec": asked,
        "kept_in": found.kept_in,
        "as_of": found.as_of,
        "resource_count": len(found.addresses),
        "addresses": found.addresses[:MAX_LISTED],
        "unlisted": max(0, len(found.addresses) - MAX_LISTED),
    }
    return render(request, template, context)


@action
def request_destroy(request: PageRequest, org: str, spec: str) -> str:
    job = queue_destroy(
        spec=spec_to_apply(request.user, org, spec),
        confirmation=request.POST.get("confirmation", ""),
        requested_by=request.user,
    )
    return resolve_url("job", org, job.number)


@action
def plan_destroy(request: PageRequest, org: str, spec: str) -> str:
    """A destroy that is reviewed before it happens."""
    asked = spec_to_plan(request.user, org, spec)
    job = queue_plan(spec=asked, requested_by=request.user, destroy=True)
    return resolve_url("job", org, job.number)
