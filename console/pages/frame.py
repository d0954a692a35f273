"""The base of every page: who is signed in, the frame around the page, and how a form is answered."""

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect, HttpResponseLocation
from django_htmx.middleware import HtmxDetails

from console.accounts.models import Membership, Organization, User
from console.accounts.rights import Right
from console.errors import Forbidden, SlipwayError
from console.pages.rail import RAIL, Place, place_of
from runner import __version__

THEMES = ("light", "dark")


class HtmxRequest(HttpRequest):
    htmx: HtmxDetails


class PageRequest(HtmxRequest):
    """A request by a person who is signed in."""

    user: User


Page = Callable[..., HttpResponseBase]


def signed_in(view: Page) -> Page:
    """Only for people who are signed in; others sign in first and then come here."""

    @never_cache
    @wraps(view)
    def guarded(request: HtmxRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)
        if is_fragment(request):
            # The sign-in page must not end up inside a part of the page that has lost its session.
            return HttpResponseClientRedirect(_sign_in_and_return(request))
        return redirect_to_login(request.get_full_path(), resolve_url(settings.LOGIN_URL))

    return guarded


def action(view: Callable[..., str]) -> Page:
    """A form's POST. The view returns where to go; a refusal is shown beside the button that asked."""

    @require_POST
    @signed_in
    @wraps(view)
    def answered(request: PageRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not is_fragment(request):
            return redirect(view(request, *args, **kwargs))
        try:
            return HttpResponseLocation(view(request, *args, **kwargs))
        except SlipwayError as error:
            return render(request, "_refusal.html", {"error": error}, status=error.status)

    return answered


def is_fragment(request: HtmxRequest) -> bool:
    """Return true if htmx asked for a part of the page. A boosted link asks for a whole one."""
    return bool(request.htmx) and not request.htmx.boosted


def _sign_in_and_return(request: HtmxRequest) -> str:
    page = urlsplit(request.htmx.current_url or "/").path
    return f"{resolve_url(settings.LOGIN_URL)}?{urlencode({'next': page})}"


@signed_in
def home(request: PageRequest) -> HttpResponseRedirect:
    """The dashboard of the person's first organization."""
    membership = (
        request.user.memberships.select_related("organization").order_by("organization__name").first()
    )
    if membership is None:
        raise Forbidden("You are signed in, but a member of no organization. Ask an admin to add you to one.")
    return redirect("dashboard", membership.organization.slug)


def shell(request: HttpRequest) -> dict[str, "Shell"]:
    """The context processor of the frame. Nothing is read before a template asks for it."""
    return {"shell": Shell(request)}


class Shell:
    """The frame around a page: organizations, rights, the chosen theme, the place in the rail."""

    version = __version__

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    @cached_property
    def memberships(self) -> list[Membership]:
        user = getattr(self._request, "user", None)
        if not isinstance(user, User):
            return []
        return list(user.memberships.select_related("organization").order_by("organization__name"))

    @cached_property
    def membership(self) -> Membership | None:
        """The membership in the organization that the address names, else the first."""
        match = self._request.resolver_match
        slug = match.kwargs.get("org") if match else None
        matching = [membership for membership in self.memberships if membership.organization.slug == slug]
        return next(iter(matching or self.memberships), None)

    @property
    def organization(self) -> Organization | None:
        return self.membership.organization if self.membership else None

    @cached_property
    def may(self) -> dict[Right, bool]:
        """Each right by its name, `shell.may.apply`: the answer that the door behind the button gives."""
        membership = self.membership
        return {right: membership is not None and membership.may(right) for right in Right}

    @property
    def theme(self) -> str:
        theme = self._request.COOKIES.get("slipway_theme", "")
        return theme if theme in THEMES else ""

    @property
    def place(self) -> str:
        """The place of the rail that this page belongs to."""
        return place_of(self._request.resolver_match)

    @property
    def rail(self) -> list[Place]:
        return [place for place in RAIL if self.may[place.right]]

    @property
    def server_time(self) -> str:
        return timezone.now().isoformat()
