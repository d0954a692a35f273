"""Google's token services, a machine's metadata server, Compute and DNS lists, and a door to the storage
emulator, as one process.

The exchange and the impersonation check what Google documents that it checks, and answer errors in its form.
Nothing behind it is reached without an access token that it has given out itself.
"""

from __future__ import annotations

import secrets
import sys
import threading
import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt

from tests.runner.clouds.fake_server import Answer, Handler, as_json, forward, serve
from tests.runner.clouds.verification import Rejected, verify

_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
_JWT = "urn:ietf:params:oauth:token-type:jwt"


class Issued:
    """Access tokens that are good: whose they are, from when and until when."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: dict[str, tuple[str, float, float]] = {}

    def new(self, whose: str, seconds: float) -> str:
        token, now = f"ya29.{secrets.token_urlsafe(40)}", time.time()
        with self._lock:
            # A request that is on its way when the time is over is still let in.
            self._tokens[token] = (whose, now, now + seconds + 30)
        return token

    def owner(self, token: str, *, over_before: float) -> str | None:
        whose, since, until = self._tokens.get(token, ("", 0.0, 0.0))
        return whose if over_before <= since and time.time() < until else None


class FakeGoogle(Handler):
    storage_port: int
    issued = Issued()

    def handle_request(self, body: bytes) -> Answer:
        path = urlsplit(self.path).path
        if path == "/sts/v1/token":
            return self._exchange({name: values[0] for name, values in parse_qs(body.decode()).items()})
        if path == "/oauth2/token":
            return self._key_grant({name: values[0] for name, values in parse_qs(body.decode()).items()})
        if path.startswith("/computeMetadata/"):
            return self._metadata(path)
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        owner = self.issued.owner(bearer, over_before=self.behaviour.settings.get("over_before", 0))
        if owner is None:
            return _error(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
        if path.startswith("/iamcredentials/"):
            return self._impersonate(owner, path)
        if owner.startswith("principal:"):
            return _error(403, "PERMISSION_DENIED", "The caller does not have permission")
        return self._serve(path, body)

    def _exchange(self, form: dict[str, str]) -> Answer:
        settings = self.behaviour.settings
        if form.get("grant_type") != _GRANT or form.get("subject_token_type") != _JWT:
            return as_json(
                400, {"error": "invalid_request", "error_description": "Invalid grant or token type."}
            )
        provider = form.get("audience", "").removeprefix("//iam.googleapis.com/")
        trusted = settings.get("providers", {}).get(provider)
        if trusted is None:
            return _oauth(
                "invalid_target", f'The target service indicated by the "audience" is invalid: {provider}'
            )
        try:
            claims = verify(
                form.get("subject_token", ""),
                issuers={trusted["issuer"]: [f"https://iam.googleapis.com/{provider}"]},
                settings=settings,
            )
            _require_condition(claims, trusted)
        except Rejected as error:
            self.behaviour.record(action="exchange", rejected=error.reason)
            return _oauth(*_REFUSALS[error.reason])
        seconds = settings.get("session_seconds", 3600)
        token = self.issued.new(f"principal:{claims['sub']}", seconds)
        self.behaviour.record(action="exchange", jti=claims["jti"], subject=claims["sub"])
        return as_json(
            200,
            {
                "access_token": token,
                "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "token_type": "Bearer",
                "expires_in": seconds,
            },
        )

    def _key_grant(self, form: dict[str, str]) -> Answer:
        """Grant a token for an assertion that a key of the service account has signed."""
        try:
            account = str(jwt.decode(form["assertion"], options={"verify_signature": False})["iss"])
            public = self.behaviour.settings.get("keys", {})[account]
            jwt.decode(
                form["assertion"],
                public,
                algorithms=["RS256"],
                audience="https://oauth2.googleapis.com/token",  # whatever the address
                options={"require": ["iss", "aud", "exp", "iat", "scope"]},
            )
        except (jwt.PyJWTError, KeyError):
            self.behaviour.record(action="key", rejected=True)
            return _oauth("invalid_grant", "Invalid JWT Signature.")
        self.behaviour.record(action="key", account=account)
        token = self.issued.new(account, 3600)
        return as_json(200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600})

    def _metadata(self, path: str) -> Answer:
        """Answer as the metadata server of a machine with a service account."""
        account = self.behaviour.settings.get("machine_account")
        if self.headers.get("Metadata-Flavor") != "Google" or account is None:
            return 404, {"Content-Type": "text/html"}, b"not found"
        self.behaviour.record(action="metadata", path=path)
        flavour = {"Metadata-Flavor": "Google"}
        if path.endswith("/project/project-id"):
            return 200, {**flavour, "Content-Type": "application/text"}, b"suite-project"
        if path.endswith("/token"):
            token = {"access_token": self.issued.new(account, 3600), "expires_in": 3600}
            status, headers, content = as_json(200, {**token, "token_type": "Bearer"})
        else:
            status, headers, content = as_json(200, {"email": account, "scopes": [], "aliases": ["default"]})
        return status, {**flavour, **headers}, content

    def _impersonate(self, owner: str, path: str) -> Answer:
        account = path.rpartition("/serviceAccounts/")[2].removesuffix(":generateAccessToken")
        allowed = self.behaviour.settings.get("service_accounts", {}).get(account, [])
        if not any(owner.removeprefix("principal:").startswith(prefix) for prefix in allowed):
            return _error(
                403,
                "PERMISSION_DENIED",
                "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).",
            )
        seconds = self.behaviour.settings.get("session_seconds", 3600)
        ends = datetime.fromtimestamp(time.time() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return as_json(200, {"accessToken": self.issued.new(account, seconds), "expireTime": ends})

    def _serve(self, path: str, body: bytes) -> Answer:
        if path.startswith(("/storage/", "/upload/", "/download/", "/states/")):
            self.behaviour.record(action=f"storage {self.command}", token=self.headers["Authorization"][-8:])
            return forward(self, self.storage_port, body)
        for end in self.behaviour.settings.get("denied", ()):
            if path.endswith(end):
                return _error(403, "PERMISSION_DENIED", f"Required permission for {end} is missing")
        if self.behaviour.take("throttle", path.rpartition("/")[2]):
            return _error(429, "RESOURCE_EXHAUSTED", "Quota exceeded")
        return as_json(200, _page(path, parse_qs(urlsplit(self.path).query).get("pageToken", [""])[0]))


def _require_condition(claims: dict[str, Any], trusted: dict[str, Any]) -> None:
    if not claims["sub"].startswith(trusted.get("subject_prefix", "")):
        raise Rejected("subject", "The given credential is rejected by the attribute condition.")


_REFUSALS = {
    "subject": ("unauthorized_client", "The given credential is rejected by the attribute condition."),
    "audience": ("invalid_grant", "The audience in ID Token does not match the expected audience."),
    "issuer": ("invalid_grant", "The issuer in ID Token does not match the expected issuer."),
    "expired": ("invalid_grant", "ID Token is expired or stale to sign-in."),
    "early": ("invalid_grant", "ID Token issued at is in the future."),
    "signature": (
        "invalid_grant",
        "Error connecting to the given credential's issuer, or its key is unknown.",
    ),
}


def _oauth(code: str, description: str) -> Answer:
    return as_json(400, {"error": code, "error_description": description})


def _error(status: int, code: str, message: str) -> Answer:
    return as_json(status, {"error": {"code": status, "message": message, "status": code}})


def _page(path: str, token: str) -> dict[str, Any]:
    """A small project, of which the subnets come in two pages."""
    what = path.rpartition("/")[2]
    link = "https://www.googleapis.com/compute/v1/projects/suite-project"
    if what == "regions":
        return {"items": [{"name": "europe-west1", "status": "UP"}, {"name": "us-east1", "status": "UP"}]}
    if what == "networks":
        return {"items": [{"name": "main", "selfLink": f"{link}/global/networks/main"}]}
    if what == "subnetworks":
        region, name = ("us-east1", "second") if token else ("europe-west1", "first")
        subnet = {
            "name": name, "ipCidrRange": "10.0.0.0/20", "region": f"{link}/regions/{region}",
            "network": f"{link}/global/networks/main",
            "selfLink": f"{link}/regions/{region}/subnetworks/{name}",
        }  # fmt: skip
        return {"items": {f"regions/{region}": {"subnetworks": [subnet]}}} | (
            {} if token else {"nextPageToken": "two/2"}
        )
    if what == "managedZones":
        return {"managedZones": [{"name": "zone", "dnsName": "example.com.", "visibility": "public"}]}
    if what == "clusters":
        return {"clusters": [{"name": "cluster", "location": "europe-west1-b"}]}
    return {}


if __name__ == "__main__":
    FakeGoogle.storage_port = int(sys.argv[1])
    serve(FakeGoogle)
