"""What each cloud does with a token: find its issuer's keys over HTTP, and check it with another library."""

from __future__ import annotations

import time
from typing import Any

import httpx
import jwt

TIMEOUT_SECONDS = 10


class Rejected(Exception):
    """Why a cloud does not take a token: signature, issuer, audience, expired, early or subject."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def verified(token: str, *, issuers: dict[str, list[str]], told: dict[str, Any]) -> dict[str, Any]:
    """The claims of a token of an issuer that is registered for its audience.

    A test may tell that the cloud's clock is wrong, or that all tokens before some moment are over.
    """
    unsure = _unverified(token)
    issuer = str(unsure.get("iss"))
    if issuer not in issuers:
        raise Rejected("issuer", f"No OpenIDConnect provider found in your account for {issuer}")
    claims = _signed(token, issuer)
    if claims.get("aud") not in issuers[issuer]:
        raise Rejected("audience", f"Incorrect token audience: {claims.get('aud')}")
    if claims["iat"] < told.get("over_before", 0):
        raise Rejected("expired", f"Token expired: it is of {claims['iat']}")
    _check_times(claims, now=time.time() + told.get("clock_offset_seconds", 0))
    return claims


def _unverified(token: str) -> dict[str, Any]:
    try:
        return dict(jwt.decode(token, options={"verify_signature": False}))
    except jwt.PyJWTError as error:
        raise Rejected("signature", "The token is not a JSON web token") from error


def _signed(token: str, issuer: str) -> dict[str, Any]:
    """The keys are asked for each time: that the issuer publishes them is a part of what is tested."""
    configuration = _document(f"{issuer}/.well-known/openid-configuration")
    keys = jwt.PyJWKSet.from_dict(_document(configuration["jwks_uri"])).keys
    header = jwt.get_unverified_header(token)
    found = [key for key in keys if key.key_id == header.get("kid")]
    if configuration["issuer"] != issuer or not found:
        raise Rejected("signature", "Couldn't retrieve verification key from your identity provider")
    try:
        return dict(
            jwt.decode(
                token,
                found[0].key,
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
