"""The first-run guide."""

from django.http import HttpResponse
from django.shortcuts import render, resolve_url

from console.accounts.access import organization_to_view
from console.accounts.guide import close_guide, skip_cloud
from console.pages.frame import PageRequest, action, signed_in
from console.pages.selectors.guide import guide_of
from specs.access import organization_to_manage_specs


@signed_in
def start(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    return render(
        request, "start/start.html", {"organization": organization, "guide": guide_of(organization)}
    )


@action
def skip(request: PageRequest, org: str) -> str:
    organization = organization_to_manage_specs(request.user, org)
    skip_cloud(organization=organization, skip=request.POST.get("skip") != "0")
    return resolve_url("start", org)


@action
def close(request: PageRequest, org: str) -> str:
    close_guide(organization=organization_to_manage_specs(request.user, org))
    return resolve_url("dashboard", org)
