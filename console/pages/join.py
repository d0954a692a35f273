"""Joining an organization with an invitation link."""

from django.contrib.auth import login
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from console.accounts import members
from console.accounts.models import Invitation, User
from console.errors import SlipwayError
from console.pages.frame import HtmxRequest

BACKEND = "django.contrib.auth.backends.ModelBackend"


@never_cache
def join(request: HtmxRequest, token: str) -> HttpResponseBase:
    """Show the invitation on GET; join on POST, as the person who is signed in or as a new one."""
    invitation = members.invitation_by(token)
    if request.method != "POST":
        return render(request, "accounts/join.html", {"invitation": invitation, "token": token})
    try:
        _join(request, invitation)
    except SlipwayError as error:
        context = {"invitation": invitation, "token": token, "error": error}
        return render(request, "accounts/join.html", context, status=error.status)
    return redirect("dashboard", invitation.organization.slug)


def _join(request: HtmxRequest, invitation: Invitation) -> None:
    if isinstance(request.user, User):
        members.accept_invitation(invitation=invitation, user=request.user)
        return
    user = members.join_as_new_person(
        invitation=invitation,
        username=request.POST.get("username", ""),
        password=request.POST.get("password", ""),
    )
    login(request, user, backend=BACKEND)
