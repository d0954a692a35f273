"""The list of runners, and the page that adds one and waits for it."""

from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.accounts.access import organization_to_view
from console.pages.frame import PageRequest, action, signed_in
from console.runners import access, services
from console.runners.models import DEFAULT_POOL, RegistrationToken
from console.runners.selectors import arrival_by, runners_in_detail
from console.runners.services import default_pool
from console.runners.start_commands import check_command, start_commands


@signed_in
def runners(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    return render(request, "runners/runners.html", {"runners": runners_in_detail(organization)})


def add(request: PageRequest, org: str) -> HttpResponseBase:
    return offer(request, org) if request.method == "POST" else ask(request, org)


@signed_in
def ask(request: PageRequest, org: str) -> HttpResponse:
    organization = access.organization_to_manage_runners(request.user, org)
    default_pool(organization)
    pools = organization.pools.order_by("name")
    return render(request, "runners/add.html", {"pools": pools, "chosen": DEFAULT_POOL})


@signed_in
def offer(request: PageRequest, org: str) -> HttpResponse:
    """Answers with the token itself, which is nowhere else; what waits for the runner asks without it."""
    organization = access.organization_to_manage_runners(request.user, org)
    name = request.POST.get("new_pool", "").strip() or request.POST.get("pool", DEFAULT_POOL)
    pool = services.pool_named(organization=organization, name=name, made_by=request.user)
    token, text = services.offer_registration(organization=organization, pool=pool, created_by=request.user)
    return _waiting(request, token, text)


@signed_in
def waiting(request: PageRequest, org: str, token_id: UUID) -> HttpResponse:
    return _waiting(request, access.registration_to_manage(request.user, org, token_id))


@action
def revoke(request: PageRequest, org: str, runner_id: UUID) -> str:
    runner = access.runner_to_manage(request.user, org, runner_id)
    services.revoke_runner(runner=runner, revoked_by=request.user)
    return resolve_url("runners", org)


@action
def drain(request: PageRequest, org: str, runner_id: UUID) -> str:
    runner = access.runner_to_manage(request.user, org, runner_id)
    draining = request.POST.get("draining") == "1"
    services.set_runner_drain(runner=runner, draining=draining, requested_by=request.user)
    return resolve_url("runners", org)


def _waiting(request: PageRequest, token: RegistrationToken, text: str = "") -> HttpResponse:
    context = {
        "arrival": arrival_by(token),
        "text": text,
        "ways": start_commands(console=settings.SLIPWAY_PUBLIC_URL, token=text),
        "check": check_command(console=settings.SLIPWAY_PUBLIC_URL),
    }
    return render(request, "runners/waiting.html", context)
