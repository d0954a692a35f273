"""Creating a Spec: first the source, then one form for everything it needs."""

from typing import Any

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import render, resolve_url

from console.accounts.models import Organization
from console.errors import SlipwayError
from console.identities.selectors import identities_for_new
from console.jobs.services import request_plan
from console.pages.forms import specs as forms
from console.pages.frame import PageRequest, action, signed_in
from console.pages.specs.frame import ENVIRONMENTS, SOURCES, find_pool, list_pools
from specs import services
from specs.access import organization_to_manage_specs
from specs.catalogue import blueprint_of, catalogue_of
from specs.configuration_cache import load_configuration
from specs.document import new_document
from specs.models import Spec
from specs.variables import empty_bundle

#: What an editor opens with, so that the first thing a person sees is valid.
FIRST_FILE = 'variable "name" {\n  type    = string\n  default = "harbour"\n}\n'


@signed_in
def new(request: PageRequest, org: str) -> HttpResponse:
    """First the choice of a source, then one form for everything that it needs."""
    organization = organization_to_manage_specs(request.user, org)
    kind = request.GET.get("source", "")
    if kind not in SOURCES:
        return render(request, "specs/new.html", {"catalogue": catalogue_of(organization)})
    context = {
        "kind": kind,
        "pools": list_pools(organization),
        "identities": identities_for_new(organization),
        "environments": ENVIRONMENTS,
        "files": [("main.tf", FIRST_FILE)] if kind == "inline" else [],
        **(_blueprint_context(organization, request.GET.get("name", "")) if kind == "blueprint" else {}),
    }
    return render(request, "specs/new_form.html", context)


@signed_in
def variable_fields(request: PageRequest, org: str) -> HttpResponse:
    """The fields of what the source in the form declares, as it is typed; or what is wrong with it."""
    organization = organization_to_manage_specs(request.user, org)
    typed = forms.typed_in(request.POST)
    try:
        stored, files = services.source_and_files_of(
            organization, forms.source_in(request.POST, request.FILES)
        )
        declared = load_configuration(new_document(stored, files=files, bundle=empty_bundle()))
    except SlipwayError as error:
        return render(request, "specs/_fields.html", {"error": error, "typed": typed}, status=error.status)
    groups = forms.field_groups(declared, typed=typed)
    return render(request, "specs/_fields.html", {"groups": groups, "stored": stored})


@action
def create_spec(request: PageRequest, org: str) -> str:
    """Both or neither: what cannot be planned is refused before the Spec exists."""
    with transaction.atomic():
        spec = _create_from_form(request, org)
        if request.POST.get("then") != "plan":
            return resolve_url("spec", org, spec.slug)
        job = request_plan(spec=spec, requested_by=request.user)
    return resolve_url("job", org, job.number)


def _create_from_form(request: PageRequest, org: str) -> Spec:
    """Make the Spec that a form describes."""
    organization = organization_to_manage_specs(request.user, org)
    source = forms.source_in(request.POST, request.FILES)
    stored, files = services.source_and_files_of(organization, source)
    declared = load_configuration(new_document(stored, files=files, bundle=empty_bundle()))
    bundle, sensitive = forms.variables_in(request.POST, declared)
    return services.create_spec(
        organization=organization,
        name=request.POST.get("name", ""),
        source=source if source["kind"] != "inline" else {"kind": "inline", "files": files},
        pool_id=find_pool(organization, request.POST.get("pool", "")).pk,
        author=request.user,
        bundle=bundle,
        sensitive=sensitive,
        settings={
            "environment": request.POST.get("environment", "") or ENVIRONMENTS[0],
            "description": request.POST.get("description", ""),
            "identity": request.POST.get("identity", ""),
            "region": request.POST.get("region", ""),
        },
    )


def _blueprint_context(organization: Organization, name: str) -> dict[str, Any]:
    blueprint = blueprint_of(organization, name)
    stored, files = services.source_and_files_of(organization, {"kind": "blueprint", "name": name})
    declared = load_configuration(new_document(stored, files=files, bundle=empty_bundle()))
    return {
        "blueprint": blueprint,
        "groups": forms.field_groups(declared, presented=blueprint.variables),
        "stored": stored,
    }
