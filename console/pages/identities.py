"""The pages of cloud identities: the list, connecting an account step by step, and one identity."""

from typing import Any

from django.http import HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.accounts.access import organization_to_view
from console.accounts.models import Organization
from console.errors import NotFound
from console.identities import access, selectors, services
from console.identities.access import organization_to_manage_identities
from console.identities.clouds import CLOUDS, cloud_of
from console.identities.issuer import issuer
from console.identities.jobs import request_connection_test, request_fetch
from console.identities.resources import find_resources
from console.identities.services import Allowed
from console.identities.trust import setup_snippets
from console.inputs import whole_number
from console.pages.forms.identities import empty_fields, filled_fields, posted_allowed, posted_settings
from console.pages.frame import PageRequest, action, is_fragment, signed_in
from console.runners.models import Pool
from console.runners.services import default_pool
from specs.models import Spec

#: As many as a person scrolls through; a search narrows down.
PAGE_SIZE = 100
#: The length of a browser's own list of suggestions.
MAX_OPTIONS = 50


@signed_in
def identities(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    context = {"identities": selectors.identities_of(organization)}
    return render(request, "identities/identities.html", context)


def connect(request: PageRequest, org: str) -> HttpResponseBase:
    """Show the guide on GET, create the identity on POST."""
    return (create if request.method == "POST" else guide)(request, org)


@signed_in
def guide(request: PageRequest, org: str) -> HttpResponse:
    """Ask which cloud first, then show its form."""
    organization = organization_to_manage_identities(request.user, org)
    cloud = CLOUDS.get(request.GET.get("provider", ""))
    context: dict[str, Any] = {"clouds": CLOUDS.values()}
    if cloud is not None:
        context |= {"cloud": cloud, "fields": empty_fields(cloud), **_allowed(organization, Allowed())}
    return render(request, "identities/connect.html", context)


@action
def create(request: PageRequest, org: str) -> str:
    organization = organization_to_manage_identities(request.user, org)
    cloud = cloud_of(request.POST.get("provider", ""))
    identity = services.create_identity(
        organization=organization,
        name=request.POST.get("name", ""),
        provider=cloud.key,
        settings=posted_settings(request.POST, cloud),
        created_by=request.user,
        allowed=posted_allowed(request.POST),
    )
    return resolve_url("identity-setup" if cloud.has_sessions else "identity", org, identity.slug)


@signed_in
def identity(request: PageRequest, org: str, identity_slug: str) -> HttpResponse:
    identity = access.identity_to_view(request.user, org, identity_slug)
    jobs = selectors.latest_jobs(identity)
    context = {
        "identity": identity,
        "fields": filled_fields(identity),
        "regions": selectors.lists_by_region(identity),
        "jobs": jobs,
        "testing": _active(jobs, "CONNECTION_TEST"),
        "fetching": _active(jobs, "FETCH_RESOURCES"),
        "specs": selectors.specs_using(identity),
        "allowed": selectors.allowed_names(identity),
    }
    return render(request, "identities/identity.html", context)


@signed_in
def setup(request: PageRequest, org: str, identity_slug: str) -> HttpResponse:
    """Show what to run in the account, filled in for this identity."""
    identity = access.identity_to_view(request.user, org, identity_slug)
    context = {
        "identity": identity,
        "snippets": setup_snippets(identity),
        "issuer": issuer(),
        "is_public": issuer().startswith("https://"),
    }
    return render(request, "identities/setup.html", context)


def change(request: PageRequest, org: str, identity_slug: str) -> HttpResponseBase:
    return (save if request.method == "POST" else edit)(request, org, identity_slug)


@signed_in
def edit(request: PageRequest, org: str, identity_slug: str) -> HttpResponse:
    identity = access.identity_to_manage(request.user, org, identity_slug)
    context = {
        "identity": identity,
        "fields": filled_fields(identity),
        "using": len(selectors.specs_using(identity)),
        **_allowed(identity.organization, selectors.allowed_names(identity)),
    }
    return render(request, "identities/change.html", context)


@action
def save(request: PageRequest, org: str, identity_slug: str) -> str:
    identity = access.identity_to_manage(request.user, org, identity_slug)
    services.change_identity(
        identity=identity,
        changed_by=request.user,
        name=request.POST.get("name", ""),
        settings=posted_settings(request.POST, identity.cloud),
        allowed=posted_allowed(request.POST),
    )
    return resolve_url("identity", org, identity_slug)


def delete(request: PageRequest, org: str, identity_slug: str) -> HttpResponseBase:
    """Show the question on GET, delete on POST."""
    return (forget if request.method == "POST" else ask_delete)(request, org, identity_slug)


@signed_in
def ask_delete(request: PageRequest, org: str, identity_slug: str) -> HttpResponse:
    identity = access.identity_to_manage(request.user, org, identity_slug)
    context = {"identity": identity, "specs": selectors.specs_using(identity)}
    template = "identities/_delete.html" if is_fragment(request) else "identities/delete.html"
    return render(request, template, context)


@action
def forget(request: PageRequest, org: str, identity_slug: str) -> str:
    identity = access.identity_to_manage(request.user, org, identity_slug)
    services.delete_identity(
        identity=identity, deleted_by=request.user, confirmation=request.POST.get("confirmation", "")
    )
    return resolve_url("identities", org)


@signed_in
def resources(request: PageRequest, org: str, identity_slug: str) -> HttpResponse:
    """Show one list of resources, page by page, with a search."""
    identity = access.identity_to_view(request.user, org, identity_slug)
    kind, region = request.GET.get("kind", ""), request.GET.get("region", "")
    resource_list = identity.lists.filter(kind=kind[:40], region=region[:60]).first()
    if resource_list is None:
        raise NotFound("No resources of that kind were scanned in that region.")
    search, page = request.GET.get("q", ""), whole_number(request.GET.get("page")) or 1
    matches = find_resources(
        identity_ids=[identity.pk],
        kind=kind,
        region=region,
        search=search,
        offset=(page - 1) * PAGE_SIZE,
        limit=PAGE_SIZE + 1,
    )
    context = {
        "identity": identity,
        "list": resource_list,
        "resources": matches[:PAGE_SIZE],
        "search": search,
        "page": page,
        "next": page + 1 if len(matches) > PAGE_SIZE else None,
        "previous": page - 1 if page > 1 else None,
    }
    return render(request, "identities/resources.html", context)


@signed_in
def options(request: PageRequest, org: str) -> JsonResponse:
    """List suggestions for a picker: of the chosen identity, else of all that the organization has."""
    organization = organization_to_view(request.user, org)
    name = request.GET.get("identity", "")
    identities = [access.identity_of(organization, name)] if name else selectors.identities_of(organization)
    matches = find_resources(
        identity_ids=[identity.pk for identity in identities],
        kind=request.GET.get("kind", "")[:40],
        region=request.GET.get("region", "")[:60],
        search=request.GET.get("q", ""),
        limit=MAX_OPTIONS + 1,
    )
    suggestions = [{"value": match.id, "label": match.label} for match in matches[:MAX_OPTIONS]]
    return JsonResponse({"options": suggestions, "has_more": len(matches) > MAX_OPTIONS})


@action
def test_identity(request: PageRequest, org: str, identity_slug: str) -> str:
    identity = access.identity_to_test(request.user, org, identity_slug)
    request_connection_test(identity=identity, requested_by=request.user)
    return resolve_url("identity", org, identity_slug)


@action
def refresh_identity(request: PageRequest, org: str, identity_slug: str) -> str:
    identity = access.identity_to_test(request.user, org, identity_slug)
    request_fetch(identity=identity, requested_by=request.user)
    return resolve_url("identity", org, identity_slug)


def _allowed(organization: Organization, allowed: Allowed) -> dict[str, Any]:
    """Return the Specs and pools that may use an identity, as the form's boxes."""
    default_pool(organization)
    specs = Spec.objects.filter(organization=organization).order_by("name")
    pools = Pool.objects.filter(organization=organization).order_by("name")
    return {
        "allowed": allowed,
        "all_specs": [(spec, spec.slug in allowed.specs) for spec in specs],
        "all_pools": [(pool, pool.name in allowed.pools) for pool in pools],
    }


def _active(jobs: list[Any], type: str) -> Any:
    return next((job for job in jobs if job.type == type and not job.is_final), None)
