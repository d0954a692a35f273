"""How programs prove who they are to the API: a person's token."""

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from console.accounts.models import ApiToken, User
from console.accounts.tokens import digest
from console.errors import NotSignedIn

#: Often enough to see a forgotten token, seldom enough not to write at each request.
LAST_USED_EVERY = timedelta(minutes=5)


class ApiTokenAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, text = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = find_token(text.strip())
        if token is None:
            raise AuthenticationFailed(
                "This token is unknown, expired or revoked. Make a new one in Settings."
            )
        return limited_user(token), token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def person(request: Request) -> User:
    """Who is calling. Every API view asks for somebody who is signed in."""
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


def limited_user(token: ApiToken) -> User:
    """The token's owner, who may see the token's organization only (`accounts.access` asks)."""
    user = token.user
    user.limited_to_organization_id = token.organization_id  # type: ignore[attr-defined]
    return user
