"""Tokens of the console's, good ones and those that differ from one in a single respect."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.jwk import RSAKey

from console.identities.keys import current_key, private_key

SUBJECT = "organization:ours@1:spec:network@2:environment:dev:action:deploy"

#: The five ways in which a token must not be wrong.
WRONGS = ("subject", "audience", "expiry", "key", "issuer")


@dataclass(frozen=True)
class Mint:
    """Signs with the console's own key, for an issuer and an audience."""

    issuer: str
    audience: str

    def good(self, **claims: Any) -> str:
        now = int(time.time())
        payload = {
            "iss": self.issuer, "sub": SUBJECT, "aud": self.audience, "iat": now, "nbf": now - 30,
            "exp": now + 900, "jti": str(uuid.uuid4()), **claims,
        }  # fmt: skip
        key = current_key()
        return jwt.encode({"alg": "RS256", "kid": key.kid}, payload, private_key(key), algorithms=["RS256"])

    def wrong(self, how: str) -> str:
        wrongs: dict[str, Callable[[], str]] = {
            "subject": lambda: self.good(sub=SUBJECT.replace("ours@1", "theirs@9")),
            "audience": lambda: self.good(aud="https://elsewhere.example.com"),
            "expiry": lambda: self.good(exp=int(time.time()) - 1),
            "key": self._of_another_key,
            "issuer": lambda: self.good(iss="https://console.example.com"),
        }
        return wrongs[how]()

    def _of_another_key(self) -> str:
        """Make a token that names the console's key and is signed by another."""
        stranger = RSAKey.generate_key(2048, private=True)
        payload = {
            "iss": self.issuer, "sub": SUBJECT, "aud": self.audience, "iat": int(time.time()),
            "exp": int(time.time()) + 900, "jti": "forged",
        }  # fmt: skip
        header = {"alg": "RS256", "kid": current_key().kid}
        return jwt.encode(header, payload, stranger, algorithms=["RS256"])
