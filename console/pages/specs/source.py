"""The source of a Spec: a blueprint, files or a Git repository."""

from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.errors import BadInput
from console.inputs import whole_number
from console.pages.forms import specs as forms
from console.pages.frame import PageRequest, action, signed_in
from console.pages.specs.frame import SOURCES, tab_context
from specs import access, selectors, services
from specs.catalogue import catalogue_of
from specs.document import files_of


def source(request: PageRequest, org: str, spec_slug: str) -> HttpResponseBase:
    return (
        save_source(request, org, spec_slug)
        if request.method == "POST"
        else show_source(request, org, spec_slug)
    )


@signed_in
def show_source(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    spec = access.spec_to_view(request.user, org, spec_slug)
    revision = selectors.current_revision(spec)
    stored = revision.document["source"]
    kind = request.GET.get("kind", "")
    files, unreadable = _files_of(revision.document)
    context = {
        **tab_context(spec, "source"),
        "revision": revision,
        "stored": stored,
        "kind": kind if kind in SOURCES else stored["kind"],
        "files": sorted(files.items()),
        "unreadable": unreadable,
        "catalogue": catalogue_of(spec.organization),
    }
    return render(request, "specs/source.html", context)


@action
def save_source(request: PageRequest, org: str, spec_slug: str) -> str:
    spec = access.spec_to_manage(request.user, org, spec_slug)
    services.change_source(
        spec=spec,
        source=forms.source_in(request.POST, request.FILES),
        author=request.user,
        message=request.POST.get("message", ""),
        based_on=whole_number(request.POST.get("based_on")),
    )
    return resolve_url("spec-source", org, spec_slug)


def _files_of(document: dict[str, Any]) -> tuple[dict[str, str], str]:
    try:
        return files_of(document), ""
    except BadInput as error:
        return {}, str(error)
