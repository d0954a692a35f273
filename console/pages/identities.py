"""The pages of cloud identities: the list, connecting an account step by step, and what is known of one."""

from typing import Any

from django.http import HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.accounts.access import organization_to_view
from console.accounts.models import Organization
from console.errors import NotFound
from console.identities import access, selectors, services
from console.identities.access import identity_to_test, organization_to_manage_identities
from console.identities.issuer import issuer
from console.identities.jobs import request_connection_test, request_fetch
from console.identities.lifetime import session_seconds_of
from console.identities.models import Provider
from console.identities.resources import find_resources
from console.identities.services import Allowed
from console.identities.snippets import snippets_for
from console.inputs import whole_number
from console.pages.forms.identities import allowed_in, fields_of, settings_in
from console.pages.frame import PageRequest, action, is_fragment, signed_in
from console.runners.models import Pool
from console.runners.services import default_pool
from specs.models import Spec

#: As many as a person scrolls through; a search narrows down.
PAGE_SIZE = 100


#: What a browser's own list of suggestions takes.
MAX_OPTIONS = 50


WORDS = {
    Provider.AWS: "A role that jobs assume, with a signed token or from the runner’s own role.",
    Provider.GCP: "A service account that jobs impersonate through workload identity federation.",
    Provider.AZURE: "An application that trusts the signed tokens of jobs.",
    Provider.AMBIENT: "Nothing to set up: whatever the machine that runs the runner is allowed to do.",
}


@signed_in
def identities(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    found = selectors.identities_of(organization)
    rows = [{"identity": one, "session_seconds": session_seconds_of(one)} for one in found]
    return render(request, "identities/identities.html", {"rows": rows})


def connect(request: PageRequest, org: str) -> HttpResponseBase:
    """The guide on GET, the new identity on POST."""
    return (create if request.method == "POST" else guide)(request, org)


@signed_in
def guide(request: PageRequest, org: str) -> HttpResponse:
    """First which cloud, then one form."""
    organization = organization_to_manage_identities(request.user, org)
    provider = request.GET.get("provider", "")
    context: dict[str, Any] = {"choices": [(one, WORDS[one]) for one in Provider]}
    if provider in Provider.values:
        context |= {"provider": Provider(provider), "fields": fields_of(provider), "issuer": issuer()}
        context |= _who(organization, Allowed())
    return render(request, "identities/connect.html", context)


@action
def create(request: PageRequest, org: str) -> str:
    organization = organization_to_manage_identities(request.user, org)
    provider = request.POST.get("provider", "")
    made = services.create_identity(
        organization=organization,
        name=request.POST.get("name", ""),
        provider=provider,
        settings=settings_in(request.POST, provider) if provider in Provider.values else {},
        created_by=request.user,
        allowed=allowed_in(request.POST),
    )
    return resolve_url("identity-setup" if snippets_for(made) else "identity", org, made.slug)


@signed_in
def identity(request: PageRequest, org: str, identity: str) -> HttpResponse:
    shown = access.identity_to_view(request.user, org, identity)
    jobs = selectors.latest_jobs(shown)
    context = {
        "identity": shown,
        "provider": Provider(shown.provider),
        "fields": fields_of(shown.provider, shown),
        "session_seconds": session_seconds_of(shown),
        "regions": selectors.lists_by_region(shown),
        "jobs": jobs,
        "testing": _active(jobs, "CONNECTION_TEST"),
        "fetching": _active(jobs, "FETCH_RESOURCES"),
        "specs": selectors.specs_using(shown),
        "allowed": selectors.allowed_names(shown),
        "has_setup": shown.provider != Provider.AMBIENT,
    }
    return render(request, "identities/identity.html", context)


@signed_in
def setup(request: PageRequest, org: str, identity: str) -> HttpResponse:
    """What to run in the account, filled in with what this identity is."""
    shown = access.identity_to_view(request.user, org, identity)
    context = {
        "identity": shown,
        "provider": Provider(shown.provider),
        "snippets": snippets_for(shown),
        "issuer": issuer(),
        "is_public": issuer().startswith("https://"),
    }
    return render(request, "identities/setup.html", context)


def change(request: PageRequest, org: str, identity: str) -> HttpResponseBase:
    return (save if request.method == "POST" else edit)(request, org, identity)


@signed_in
def edit(request: PageRequest, org: str, identity: str) -> HttpResponse:
    shown = access.identity_to_manage(request.user, org, identity)
    context = {
        "identity": shown,
        "provider": Provider(shown.provider),
        "fields": fields_of(shown.provider, shown),
        "using": len(selectors.specs_using(shown)),
        **_who(shown.organization, selectors.allowed_names(shown)),
    }
    return render(request, "identities/change.html", context)


@action
def save(request: PageRequest, org: str, identity: str) -> str:
    changed = access.identity_to_manage(request.user, org, identity)
    services.change_identity(
        identity=changed,
        changed_by=request.user,
        name=request.POST.get("name", ""),
        settings=settings_in(request.POST, changed.provider),
        allowed=allowed_in(request.POST),
    )
    return resolve_url("identity", org, identity)


def delete(request: PageRequest, org: str, identity: str) -> HttpResponseBase:
    """The question on GET, the deed on POST."""
    return (forget if request.method == "POST" else ask_delete)(request, org, identity)


@signed_in
def ask_delete(request: PageRequest, org: str, identity: str) -> HttpResponse:
    shown = access.identity_to_manage(request.user, org, identity)
    context = {"identity": shown, "specs": selectors.specs_using(shown)}
    template = "identities/_delete.html" if is_fragment(request) else "identities/delete.html"
    return render(request, template, context)


@action
def forget(request: PageRequest, org: str, identity: str) -> str:
    gone = access.identity_to_manage(request.user, org, identity)
    services.delete_identity(
        identity=gone, deleted_by=request.user, confirmation=request.POST.get("confirmation", "")
    )
    return resolve_url("identities", org)


@signed_in
def resources(request: PageRequest, org: str, identity: str) -> HttpResponse:
    """One list, page by page, with a search."""
    shown = access.identity_to_view(request.user, org, identity)
    kind, region = request.GET.get("kind", ""), request.GET.get("region", "")
    found_list = shown.lists.filter(kind=kind[:40], region=region[:60]).first()
    if found_list is None:
        raise NotFound("Nothing was fetched of that kind in that region.")
    search, page = request.GET.get("q", ""), whole_number(request.GET.get("page")) or 1
    found = find_resources(
        identity_ids=[shown.pk],
        kind=kind,
        region=region,
        search=search,
        offset=(page - 1) * PAGE_SIZE,
        limit=PAGE_SIZE + 1,
    )
    context = {
        "identity": shown,
        "list": found_list,
        "found": found[:PAGE_SIZE],
        "search": search,
        "page": page,
        "next": page + 1 if len(found) > PAGE_SIZE else None,
        "previous": page - 1 if page > 1 else None,
    }
    return render(request, "identities/resources.html", context)


@signed_in
def options(request: PageRequest, org: str) -> JsonResponse:
    """What a picker offers: of one kind, of the chosen identity, else of all that the organization has."""
    organization = organization_to_view(request.user, org)
    chosen = request.GET.get("identity", "")
    identities = (
        [access.identity_of(organization, chosen)] if chosen else selectors.identities_of(organization)
    )
    found = find_resources(
        identity_ids=[one.pk for one in identities],
        kind=request.GET.get("kind", "")[:40],
        region=request.GET.get("region", "")[:60],
        search=request.GET.get("q", ""),
        limit=MAX_OPTIONS + 1,
    )
    offered = [{"value": one.id, "label": one.label} for one in found[:MAX_OPTIONS]]
    return JsonResponse({"options": offered, "has_more": len(found) > MAX_OPTIONS})


@action
def test_identity(request: PageRequest, org: str, identity: str) -> str:
    tested = identity_to_test(request.user, org, identity)
    request_connection_test(identity=tested, requested_by=request.user)
    return resolve_url("identity", org, identity)


@action
def refresh_identity(request: PageRequest, org: str, identity: str) -> str:
    fetched = identity_to_test(request.user, org, identity)
    request_fetch(identity=fetched, requested_by=request.user)
    return resolve_url("identity", org, identity)


def _who(organization: Organization, allowed: Allowed) -> dict[str, Any]:
    """The boxes of who may use it."""
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
