"""Signing in: a session for a browser, a token for the API."""

from datetime import timedelta
from typing import Any

from channels.auth import AuthMiddleware
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.middleware import AuthenticationMiddleware, get_user
from django.contrib.auth.models import AnonymousUser
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from console.accounts.models import ApiToken, User
from console.accounts.tokens import digest
from console.errors import NotSignedIn

#: Often enough to show which tokens are in use, seldom enough not to write at each request.
LAST_USED_EVERY = timedelta(minutes=5)


class ApiTokenAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, text = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = find_token(text.strip())
        if token is None:
            raise AuthenticationFailed(
                "This token is unknown, expired or revoked. Create a new one in Settings."
            )
        return sign_in_with_token(token), token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def person(request: Request) -> User:
    """Return the caller, who is signed in as every API view requires."""
    if not isinstance(request.user, User):
        raise NotSignedIn
    return request.user


def find_token(text: str) -> ApiToken | None:
    now = timezone.now()
    token = (
        ApiToken.objects.select_related("user")
        .filter(Q(expires_at=None) | Q(expires_at__gt=now), token_sha256=digest(text), revoked_at=None)
        .filter(user__is_active=True)
        .first()
    )
    if token and (token.last_used_at is None or token.last_used_at < now - LAST_USED_EVERY):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def sign_in_with_token(token: ApiToken) -> User:
    """Return the token's owner, who may use the membership of the token's organization only."""
    user = token.user
    user.usable_memberships = Q(organization_id=token.organization_id)
    return user


def sign_in_with_session(user: AbstractBaseUser | AnonymousUser) -> AbstractBaseUser | AnonymousUser:
    """Let the user of a session use all their memberships."""
    if isinstance(user, User):
        user.usable_memberships = Q()
    return user


class SessionMiddleware(AuthenticationMiddleware):
    """Django's own, whose user has signed in with a session."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: sign_in_with_session(get_user(request)))  # type: ignore[assignment]


class SocketSessionMiddleware(AuthMiddleware):
    """Channels' own, likewise."""

    async def resolve_scope(self, scope: dict[str, Any]) -> None:
        await super().resolve_scope(scope)
        sign_in_with_session(scope["user"])
