"""A person's own account: password, theme, sessions."""

from django.conf import settings
from django.contrib.auth import logout, update_session_auth_hash
from django.http import HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from console.accounts import services
from console.errors import BadInput
from console.pages.frame import THEMES, HtmxRequest, PageRequest, action, signed_in

THEME_SECONDS = 365 * 24 * 3600


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


def _back(request: HtmxRequest) -> str:
    came_from = request.POST.get("next", "")
    local = came_from.startswith("/") and url_has_allowed_host_and_scheme(came_from, allowed_hosts=None)
    return came_from if local else resolve_url("account")
