"""Verification of a token, as each cloud does it: by its issuer's keys over HTTP, with another library."""

from __future__ import annotations

import time
from typing import Any

import httpx
import jwt

TIMEOUT_SECONDS = 10


class Rejected(Exception):
    """A token is not valid; `reason` is signature, issuer, audience, expired, early or subject."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def verify(token: str, *, issuers: dict[str, list[str]], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the claims of a token of an issuer that is registered for its audience.

    A test may set the cloud's clock wrong, or end all tokens before some moment.
    """
    unverified = _read_claims(token)
    issuer = str(unverified.get("iss"))
    if issuer not in issuers:
        raise Rejected("issuer", f"No OpenIDConnect provider found in your account for {issuer}")
    claims = _verify_signature(token, issuer)
    if claims.get("aud") not in issuers[issuer]:
        raise Rejected("audience", f"Incorrect token audience: {claims.get('aud')}")
    if claims["iat"] < settings.get("over_before", 0):
        raise Rejected("expired", f"Token expired: it is of {claims['iat']}")
    _check_times(claims, now=time.time() + settings.get("clock_offset_seconds", 0))
    return claims


def _read_claims(token: str) -> dict[str, Any]:
    try:
        return dict(jwt.decode(token, options={"verify_signature": False}))
    except jwt.PyJWTError as error:
        raise Rejected("signature", "The token is not a JSON web token") from error


def _verify_signature(token: str, issuer: str) -> dict[str, Any]:
    """Verify the signature with the keys that the issuer publishes, which are read each time."""
    configuration = _document(f"{issuer}/.well-known/openid-configuration")
    keys = jwt.PyJWKSet.from_dict(_document(configuration["jwks_uri"])).keys
    header = jwt.get_unverified_header(token)
    signing_keys = [key for key in keys if key.key_id == header.get("kid")]
    if configuration["issuer"] != issuer or not signing_keys:
        raise Rejected("signature", "Couldn't retrieve verification key from your identity provider")
    try:
        return dict(
            jwt.decode(
                token,
                signing_keys[0].key,
                algorithms=["RS256"],
                options={
                    "verify_aud": False,
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                    "require": ["iss", "sub", "aud", "exp", "iat"],
                },
            )
        )
    except jwt.PyJWTError as error:
        raise Rejected("signature", "The token's signature is not valid") from error


def _check_times(claims: dict[str, Any], *, now: float) -> None:
    if now >= claims["exp"]:
        raise Rejected("expired", f"Token expired: {int(now)} must be before {claims['exp']}")
    if now < claims.get("nbf", 0):
        raise Rejected("early", f"Token is not valid before {claims['nbf']}, and it is {int(now)}")


def _document(url: str) -> dict[str, Any]:
    answer = httpx.get(url, timeout=TIMEOUT_SECONDS, trust_env=False)
    answer.raise_for_status()
    document: dict[str, Any] = answer.json()
    return document
