"""The dashboard."""

from django.http import HttpResponse
from django.shortcuts import render

from console.accounts.access import organization_to_view
from console.pages.frame import PageRequest, signed_in
from console.pages.selectors.dashboard import dashboard_of, running_jobs
from console.pages.selectors.guide import guide_of


@signed_in
def dashboard(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    guide = guide_of(organization)
    context = {
        "organization": organization,
        "board": dashboard_of(organization, request.user),
        "guide": None if guide.complete or guide.closed else guide,
    }
    return render(request, "dashboard/dashboard.html", context)


@signed_in
def running(request: PageRequest, org: str) -> HttpResponse:
    """The running jobs and their progress; fetched again while something runs."""
    organization = organization_to_view(request.user, org)
    context = {"running": running_jobs(organization), "organization": organization}
    return render(request, "dashboard/_running.html", context)
