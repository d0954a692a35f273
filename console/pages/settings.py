"""The settings of an organization: what it is called, who belongs to it, its API tokens, and draining."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings as installed
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.accounts import access, members, services
from console.accounts.models import ApiToken, Installation
from console.accounts.rights import Right, role_choices
from console.errors import BadInput, SlipwayError
from console.pages.frame import PageRequest, action, is_fragment, signed_in

#: How long a token may live, in days; none means until it is revoked.
LIFETIMES = (7, 30, 90, 365)


@signed_in
def general(request: PageRequest, org: str) -> HttpResponse:
    organization = access.organization_to_view(request.user, org)
    context = {
        "tab": "general",
        "organization": organization,
        "installation": Installation.objects.filter(pk=1).first(),
    }
    return render(request, "accounts/settings.html", context)


@action
def rename(request: PageRequest, org: str) -> str:
    organization = access.organization_to_manage_settings(request.user, org)
    services.rename_organization(
        organization=organization, name=request.POST.get("name", ""), renamed_by=request.user
    )
    return resolve_url("settings", org)


@action
def drain(request: PageRequest, org: str) -> str:
    organization = access.organization_to_manage_settings(request.user, org)
    services.set_organization_drain(
        organization=organization, draining=_is_starting(request), requested_by=request.user
    )
    return resolve_url("settings", org)


@action
def drain_installation(request: PageRequest, org: str) -> str:
    access.require_staff(request.user, org)
    services.set_installation_drain(draining=_is_starting(request))
    return resolve_url("settings", org)


@signed_in
def show_members(request: PageRequest, org: str) -> HttpResponse:
    return render(request, "accounts/members.html", _members(request, org))


def invite(request: PageRequest, org: str) -> HttpResponseBase:
    return make_invitation(request, org) if request.method == "POST" else show_members(request, org)


@signed_in
def make_invitation(request: PageRequest, org: str) -> HttpResponse:
    """Answers with the link itself, which is nowhere else: no redirect could carry it."""
    organization = access.organization_to_manage_people(request.user, org)
    return _show_once(
        request,
        lambda: members.invite(
            organization=organization,
            role=request.POST.get("role", ""),
            note=request.POST.get("note", ""),
            invited_by=request.user,
        )[1],
        fragment="accounts/_invitation.html",
        page="accounts/members.html",
        context=lambda text: {
            **_members(request, org),
            "link": f"{installed.SLIPWAY_PUBLIC_URL}{resolve_url('join', text)}",
        },
    )


@action
def withdraw_invitation(request: PageRequest, org: str, invitation_id: UUID) -> str:
    invitation = access.invitation_to_manage(request.user, org, invitation_id)
    members.withdraw_invitation(invitation=invitation, withdrawn_by=request.user)
    return resolve_url("members", org)


@action
def change_role(request: PageRequest, org: str, membership_id: UUID) -> str:
    membership = access.membership_to_manage(request.user, org, membership_id)
    members.change_role(membership=membership, role=request.POST.get("role", ""), changed_by=request.user)
    return resolve_url("members", org)


@action
def remove_member(request: PageRequest, org: str, membership_id: UUID) -> str:
    """An admin takes somebody out; anybody may leave."""
    membership = access.membership_to_end(request.user, org, membership_id)
    members.remove_member(membership=membership, removed_by=request.user)
    return resolve_url("home") if membership.user_id == request.user.pk else resolve_url("members", org)


@signed_in
def show_tokens(request: PageRequest, org: str) -> HttpResponse:
    return render(request, "accounts/tokens.html", _tokens(request, org))


def tokens(request: PageRequest, org: str) -> HttpResponseBase:
    return make_token(request, org) if request.method == "POST" else show_tokens(request, org)


@signed_in
def make_token(request: PageRequest, org: str) -> HttpResponse:
    """Answers with the token itself, which is nowhere else."""
    organization = access.organization_to_view(request.user, org)
    return _show_once(
        request,
        lambda: services.create_api_token(
            user=request.user,
            organization=organization,
            name=_token_name(request),
            valid_for=_lifetime(request.POST.get("days", "")),
        )[1],
        fragment="accounts/_token.html",
        page="accounts/tokens.html",
        context=lambda text: {**_tokens(request, org), "token": text},
    )


@action
def revoke_token(request: PageRequest, org: str, token_id: UUID) -> str:
    token = access.token_to_revoke(request.user, org, token_id)
    services.revoke_api_token(token=token, revoked_by=request.user)
    return resolve_url("tokens", org)


def _show_once(request: PageRequest, make: Any, *, fragment: str, page: str, context: Any) -> HttpResponse:
    """Show the new secret in this answer and never again; show a refusal beside the button."""
    try:
        text = make()
    except SlipwayError as error:
        if not is_fragment(request):
            raise
        return render(request, "_refusal.html", {"error": error}, status=error.status)
    return render(request, fragment if is_fragment(request) else page, context(text))


def _members(request: PageRequest, org: str) -> dict[str, Any]:
    organization = access.organization_to_view(request.user, org)
    manages_people = access.membership_of(request.user, organization).may(Right.MANAGE_PEOPLE)
    return {
        "tab": "members",
        "organization": organization,
        "members": members.members_of(organization),
        "invitations": members.open_invitations(organization) if manages_people else [],
        "roles": role_choices(),
    }


def _tokens(request: PageRequest, org: str) -> dict[str, Any]:
    organization = access.organization_to_view(request.user, org)
    membership = access.membership_of(request.user, organization)
    valid = ApiToken.objects.filter(organization=organization, revoked_at=None).select_related("user")
    others = valid.exclude(user=request.user) if membership.may(Right.MANAGE_PEOPLE) else valid.none()
    return {
        "tab": "tokens",
        "organization": organization,
        "own": valid.filter(user=request.user).order_by("-created_at"),
        "others": others.order_by("user__username", "-created_at"),
        "lifetimes": LIFETIMES,
    }


def _is_starting(request: PageRequest) -> bool:
    return request.POST.get("draining") == "1"


def _token_name(request: PageRequest) -> str:
    name = request.POST.get("name", "").strip()
    if not name or len(name) > 100:
        raise BadInput("Say what the token is for, in at most 100 characters.", field="name")
    return name


def _lifetime(text: str) -> timedelta | None:
    if not text:
        return None
    if text not in {str(days) for days in LIFETIMES}:
        raise BadInput("Choose one of the lifetimes.", field="days")
    return timedelta(days=int(text))
