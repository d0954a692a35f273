"""The catalogue: built-in blueprints, and the organization's own from Git."""

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.accounts.access import organization_to_view
from console.pages.frame import PageRequest, action, signed_in
from specs import catalogue
from specs.access import organization_to_manage_blueprints
from specs.models import OwnBlueprint


def blueprints(request: PageRequest, org: str) -> HttpResponseBase:
    return add_blueprint(request, org) if request.method == "POST" else list_blueprints(request, org)


@signed_in
def list_blueprints(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    own = {blueprint.name: blueprint for blueprint in OwnBlueprint.objects.filter(organization=organization)}
    entries = [(blueprint, own.get(blueprint.name)) for blueprint in catalogue.catalogue_of(organization)]
    return render(request, "specs/blueprints.html", {"entries": entries})


@action
def add_blueprint(request: PageRequest, org: str) -> str:
    catalogue.add_blueprint(
        organization=organization_to_manage_blueprints(request.user, org),
        name=request.POST.get("name", "").strip(),
        url=request.POST.get("url", ""),
        ref=request.POST.get("ref", ""),
        path=request.POST.get("path", ""),
        token=request.POST.get("token", ""),
        added_by=request.user,
    )
    return resolve_url("blueprints", org)


@action
def refresh_blueprint(request: PageRequest, org: str, name: str) -> str:
    own = catalogue.own_blueprint(organization_to_manage_blueprints(request.user, org), name)
    catalogue.refresh_blueprint(blueprint=own, refreshed_by=request.user)
    return resolve_url("blueprints", org)


@action
def remove_blueprint(request: PageRequest, org: str, name: str) -> str:
    own = catalogue.own_blueprint(organization_to_manage_blueprints(request.user, org), name)
    catalogue.remove_blueprint(blueprint=own, removed_by=request.user)
    return resolve_url("blueprints", org)
