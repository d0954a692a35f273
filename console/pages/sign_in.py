"""Signing in and out."""

import logging
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from console.ids import new_id

logger = logging.getLogger("slipway.errors")


class SignInForm(AuthenticationForm):
    error_messages = {
        "invalid_login": "This name and password do not belong together. Capitals matter in both.",
        "inactive": "This account is not active.",
    }


class SignIn(LoginView):
    template_name = "accounts/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "installation": _installation()}


class SignOut(LogoutView):
    next_page = "sign-in"


def locked_out(request: HttpRequest, response: HttpResponse | None, credentials: Any) -> HttpResponse:
    """Too many wrong passwords: say when to try again. Each try in between starts the wait anew."""
    wait = timedelta(hours=settings.AXES_COOLOFF_TIME)
    error_id = str(new_id())
    logger.warning("refusal %s: too many wrong passwords for one name from one address", error_id)
    context = {
        "error_id": error_id,
        "form": SignInForm(request),
        "installation": _installation(),
        "wait_minutes": int(wait.total_seconds() // 60),
        "try_again_at": timezone.now() + wait,
    }
    locked = render(request, "accounts/sign_in.html", context, status=429)
    locked["Retry-After"] = str(int(wait.total_seconds()))
    return locked


def _installation() -> str:
    return urlsplit(settings.SLIPWAY_PUBLIC_URL).netloc
