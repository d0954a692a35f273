"""The organization's state: the newest version of each Spec, and the default backend."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render, resolve_url

from console.accounts.access import organization_to_view
from console.pages.forms.backend import backend_form, chosen_backend
from console.pages.frame import PageRequest, action, signed_in
from console.state.access import organization_to_manage_state
from console.state.backends import choose_backend
from console.state.models import Backend
from console.state.selectors import specs_with_state
from specs.models import Spec

LISTED_SPECS = 100


@signed_in
def states(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    last = Spec.objects.filter(organization=organization, slug=request.GET.get("after", "")).first()
    specs = specs_with_state(
        organization, after=(last.name, str(last.pk)) if last else None, limit=LISTED_SPECS + 1
    )
    context = {
        "specs": specs[:LISTED_SPECS],
        "more": specs[LISTED_SPECS - 1].slug if len(specs) > LISTED_SPECS else "",
        "paged": last is not None,
    }
    return render(request, "state/states.html", context)


def organization_backend(request: PageRequest, org: str) -> Any:
    """The default backend of the organization: the form on GET, the choice on POST."""
    answer = _choose_for_organization if request.method == "POST" else _ask_for_organization
    return answer(request, org)


@signed_in
def _ask_for_organization(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_manage_state(request.user, org)
    backend = Backend.objects.filter(organization=organization, spec=None).first()
    return render(
        request,
        "state/backend.html",
        {"organization": organization, **backend_form(backend, has_state=False)},
    )


@action
def _choose_for_organization(request: PageRequest, org: str) -> str:
    organization = organization_to_manage_state(request.user, org)
    choose_backend(
        organization=organization, spec=None, chosen_by=request.user, **chosen_backend(request.POST)
    )
    return resolve_url("states", org)
