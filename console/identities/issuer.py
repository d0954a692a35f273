"""The console as an OpenID Connect issuer: its two documents, and the tokens that it signs for attempts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from joserfc import jwt

from console.identities.keys import current_key, private_key, published_keys
from console.ids import new_id

#: Long enough to be exchanged, of little use to a thief; a runner asks again while it holds its job.
TOKEN_SECONDS = 900
#: A verifier whose clock is a little behind takes the token all the same.
SKEW_SECONDS = 30

ALGORITHM = "RS256"

CLAIMS = (
    "organization", "organization_id", "spec", "spec_id", "environment", "identity", "identity_id", "action",
    "job_type", "job_id", "job_number", "attempt", "runner", "runner_id", "pool", "requested_by",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Named:
    """A thing in a subject: its name for people, its id so that a later thing of that name is not it."""

    slug: str
    id: UUID

    def __str__(self) -> str:
        return f"{escape(self.slug)}@{self.id}"


@dataclass(frozen=True, slots=True)
class Signed:
    """A token, and what may be written down about it."""

    token: str
    id: UUID
    subject: str
    kid: str
    expires_at: datetime


def issuer() -> str:
    return str(settings.SLIPWAY_PUBLIC_URL)


def configuration() -> dict[str, Any]:
    """Return the document of `/.well-known/openid-configuration`."""
    return {
        "issuer": issuer(),
        "jwks_uri": f"{issuer()}/.well-known/jwks.json",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
        "scopes_supported": ["openid"],
        "claims_supported": ["iss", "sub", "aud", "exp", "nbf", "iat", "jti", *CLAIMS],
    }


def key_set() -> dict[str, Any]:
    """Return the document of `/.well-known/jwks.json`."""
    return {"keys": published_keys()}


def subject(
    *, organization: Named, action: str, spec: Named | None, environment: str, identity: Named
) -> str:
    """Return the subject that trust policies match. It has no job's id: Entra matches it exactly."""
    if spec is None:
        return f"organization:{organization}:identity:{identity}:action:{escape(action)}"
    return (
        f"organization:{organization}:spec:{spec}:environment:{escape(environment)}:action:{escape(action)}"
    )


def sign(*, subject: str, audience: str, claims: Mapping[str, Any], now: datetime) -> Signed:
    """Sign a token for one attempt. `now` is the database's clock, as everywhere."""
    key, token_id = current_key(), new_id()
    issued, expires_at = int(now.timestamp()), now + timedelta(seconds=TOKEN_SECONDS)
    payload = {
        "iss": issuer(),
        "sub": subject,
        "aud": audience,
        "iat": issued,
        "nbf": issued - SKEW_SECONDS,
        "exp": issued + TOKEN_SECONDS,
        "jti": str(token_id),
        **claims,
    }
    header = {"alg": ALGORITHM, "kid": key.kid, "typ": "JWT"}
    token = jwt.encode(header, payload, private_key(key), algorithms=[ALGORITHM])
    return Signed(token=token, id=token_id, subject=subject, kid=key.kid, expires_at=expires_at)


def escape(text: str) -> str:
    """Escape colons, which end a part of the subject."""
    return text.replace("%", "%25").replace(":", "%3A")
