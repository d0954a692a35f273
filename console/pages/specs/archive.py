"""Archiving a Spec, and restoring it."""

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.pages.frame import PageRequest, action, is_fragment, signed_in
from console.plans.archiving import archive_spec, unarchive_spec
from console.plans.inventory import may_have_resources
from specs.access import spec_to_delete


def archive(request: PageRequest, org: str, spec_slug: str) -> HttpResponseBase:
    """Ask for confirmation on GET; archive on POST."""
    answer = archive_it if request.method == "POST" else ask_archive
    return answer(request, org, spec_slug)


@signed_in
def ask_archive(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    spec = spec_to_delete(request.user, org, spec_slug)
    template = "specs/_archive.html" if is_fragment(request) else "specs/archive.html"
    return render(request, template, {"spec": spec, "standing": may_have_resources(spec)})


@action
def archive_it(request: PageRequest, org: str, spec_slug: str) -> str:
    spec = spec_to_delete(request.user, org, spec_slug)
    confirmation = request.POST.get("confirmation", "")
    archived = archive_spec(spec=spec, confirmation=confirmation, archived_by=request.user)
    return resolve_url("spec", org, archived.slug)


@action
def unarchive(request: PageRequest, org: str, spec_slug: str) -> str:
    spec = spec_to_delete(request.user, org, spec_slug)
    return resolve_url("spec", org, unarchive_spec(spec=spec, unarchived_by=request.user).slug)
