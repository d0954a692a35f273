"""A person's own account, and joining an organization by an invitation."""

from django.conf import settings
from django.contrib.auth import login, logout, update_session_auth_hash
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from console.accounts import members, services
from console.accounts.models import Invitation, User
from console.errors import BadInput, SlipwayError
from console.pages import THEMES, HtmxRequest, PageRequest, action, signed_in

THEME_SECONDS = 365 * 24 * 3600
BACKEND = "django.contrib.auth.backends.ModelBackend"


@signed_in
def account(request: PageRequest) -> HttpResponse:
    context = {
        "memberships": request.user.memberships.select_related("organization").order_by("organization__name")
    }
    return render(request, "accounts/account.html", context)


@action
def change_password(request: PageRequest) -> str:
    new = request.POST.get("new", "")
    if new != request.POST.get("again", ""):
        raise BadInput("The new password was not typed the same twice. Nothing was changed.", field="again")
    services.change_password(user=request.user, current=request.POST.get("current", ""), new=new)
    update_session_auth_hash(request, request.user)  # this session goes on; all others end
    return f"{resolve_url('account')}?{urlencode({'changed': 'password'})}"


@action
def sign_out_everywhere(request: PageRequest) -> str:
    services.end_all_sessions(user=request.user)
    logout(request)
    return resolve_url("sign-in")


@require_POST
@never_cache
def choose_theme(request: HtmxRequest) -> HttpResponse:
    """The switch for browsers without scripts; the other one writes the same cookie."""
    theme = request.POST.get("theme", "")
    answer = redirect(_back(request))
    if theme in THEMES:
        answer.set_cookie(
            "slipway_theme",
            theme,
            max_age=THEME_SECONDS,
            samesite="Lax",
            secure=settings.SESSION_COOKIE_SECURE,
        )
    else:
        answer.delete_cookie("slipway_theme", samesite="Lax")
    return answer


@never_cache
def join(request: HtmxRequest, token: str) -> HttpResponseBase:
    """What the invitation is for on GET; joining on POST, as who is signed in or as somebody new."""
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


def _back(request: HtmxRequest) -> str:
    came_from = request.POST.get("next", "")
    local = came_from.startswith("/") and url_has_allowed_host_and_scheme(came_from, allowed_hosts=None)
    return came_from if local else resolve_url("account")
