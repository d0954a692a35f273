"""Archiving a Spec, and restoring it."""

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.pages.frame import PageRequest, action, is_fragment, signed_in
from console.plans.archiving import archive_spec, unarchive_spec
from console.plans.inventory import may_have_resources
from specs.access import spec_to_delete


def archive(request: PageRequest, org: str, spec: str) -> HttpResponseBase:
    """The question on GET, the deed on POST."""
    answer = archive_it if request.method == "POST" else ask_archive
    return answer(request, org, spec)


@signed_in
def ask_archive(request: PageRequest, org: str, spec: str) -> HttpResponse:
    asked = spec_to_delete(request.user, org, spec)
    template = "specs/_archive.html" if is_fragment(request) else "specs/archive.html"
    return render(request, template, {"spec": asked, "standing": may_have_resources(asked)})


@action
def archive_it(request: PageRequest, org: str, spec: str) -> str:
    asked = spec_to_delete(request.user, org, spec)
    confirmation = request.POST.get("confirmation", "")
    archived = archive_spec(spec=asked, confirmation=confirmation, archived_by=request.user)
    return resolve_url("spec", org, archived.slug)


@action
def unarchive(request: PageRequest, org: str, spec: str) -> str:
    archived = spec_to_delete(request.user, org, spec)
    return resolve_url("spec", org, unarchive_spec(spec=archived, unarchived_by=request.user).slug)
