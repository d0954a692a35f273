"""Entra's token endpoint, Azure's lists, and a door to the blob emulator, as one process behind TLS.

The clients reach it by the clouds' real names, through a proxy. It compares issuer, subject and audience
exactly, as Entra does, and gives out access tokens that open nothing else than this process.
"""

from __future__ import annotations

import sys
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt

from tests.clouds.serving import Answer, Handler, as_json, forward, serve
from tests.clouds.verification import Rejected, verified

_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
AUDIENCE = "api://AzureADTokenExchange"
#: Signs access tokens that only this process, and azurite in its lenient mode, looks at.
_OWN_KEY = "the suite's own signing key, which opens nothing outside of this process"


class AzureGate(Handler):
    storage_port: int

    def handle_request(self, body: bytes) -> Answer:
        host = self.headers.get("Host", "").partition(":")[0]
        if host.endswith(".blob.core.windows.net"):
            return self._blob(body)
        if host == "management.azure.com":
            return self._management()
        return self._entra(body)

    def _entra(self, body: bytes) -> Answer:
        tenant, _, what = urlsplit(self.path).path.strip("/").partition("/")
        base = f"https://login.microsoftonline.com/{tenant}"
        if what.endswith("openid-configuration"):
            return as_json(
                200,
                {
                    "token_endpoint": f"{base}/oauth2/v2.0/token",
                    "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
                    "issuer": f"{base}/v2.0",
                    "device_authorization_endpoint": f"{base}/oauth2/v2.0/devicecode",
                },
            )
        if what == "oauth2/v2.0/token":
            return self._token(tenant, {name: values[0] for name, values in parse_qs(body.decode()).items()})
        return as_json(404, {"error": "not_found"})

    def _token(self, tenant: str, form: dict[str, str]) -> Answer:
        told = self.behaviour.told
        application = told.get("applications", {}).get(form.get("client_id", ""))
        if application is None or application["tenant"] != tenant:
            return _refusal("unauthorized_client", 700016, "Application was not found in the directory.")
        if form.get("client_assertion_type") != _ASSERTION:
            return _refusal("invalid_client", 7000218, "The request body must contain a client_assertion.")
        try:
            claims = self._claims(form.get("client_assertion", ""), application)
        except Rejected as error:
            self.behaviour.see(action="token", rejected=error.reason)
            return _refusal("invalid_client", *_REFUSALS[error.reason])
        seconds = told.get("session_seconds", 3600)
        self.behaviour.see(action="token", jti=claims["jti"], subject=claims["sub"], scope=form.get("scope"))
        return as_json(
            200,
            {
                "token_type": "Bearer",
                "expires_in": seconds,
                "ext_expires_in": seconds,
                "access_token": _access_token(tenant, form, seconds),
            },
        )

    def _claims(self, assertion: str, application: dict[str, Any]) -> dict[str, Any]:
        claims = verified(
            assertion,
            issuers={application["issuer"]: [AUDIENCE]},
            clock_offset_seconds=self.behaviour.told.get("clock_offset_seconds", 0),
        )
        if claims["sub"] not in application["subjects"]:
            raise Rejected("subject", "No matching federated identity record found for presented assertion.")
        return claims

    def _blob(self, body: bytes) -> Answer:
        if not self._is_open():
            return 401, {"x-ms-error-code": "InvalidAuthenticationInfo"}, b""
        self.behaviour.see(action=f"blob {self.command}", token=self.headers["Authorization"][-8:])
        return forward(self, self.storage_port, body, tls=True)

    def _management(self) -> Answer:
        if not self._is_open():
            return as_json(401, {"error": {"code": "InvalidAuthenticationToken", "message": "Expired."}})
        path = urlsplit(self.path).path
        for end in self.behaviour.told.get("denied", ()):
            if path.endswith(end):
                message = "The client does not have authorization to perform action over scope."
                return as_json(403, {"error": {"code": "AuthorizationFailed", "message": message}})
        if self.behaviour.take("throttle", path.rpartition("/")[2]):
            return as_json(429, {"error": {"code": "TooManyRequests", "message": "Slow down."}})
        return as_json(200, _page(path, "second" in self.path))

    def _is_open(self) -> bool:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            jwt.decode(token, _OWN_KEY, algorithms=["HS256"], options={"verify_aud": False})
        except jwt.PyJWTError:
            return False
        return True


def _access_token(tenant: str, form: dict[str, str], seconds: float) -> str:
    now = int(time.time())
    audience = form.get("scope", "").removesuffix("/.default")
    return jwt.encode(
        {
            "aud": audience, "iss": f"https://sts.windows.net/{tenant}/", "iat": now, "nbf": now - 5,
            "exp": now + int(seconds) + 30, "appid": form["client_id"], "tid": tenant,
        },
        _OWN_KEY,
        algorithm="HS256",
    )  # fmt: skip


_REFUSALS = {
    "subject": (700213, "No matching federated identity record found for presented assertion subject."),
    "audience": (700212, "No matching federated identity record found for presented assertion audience."),
    "issuer": (700211, "No matching federated identity record found for presented assertion issuer."),
    "expired": (700024, "Client assertion is not within its valid time range."),
    "early": (700024, "Client assertion is not within its valid time range."),
    "signature": (
        700027,
        "The certificate with identifier used to sign the client assertion is not registered.",
    ),
}


def _refusal(code: str, number: int, message: str) -> Answer:
    return as_json(
        401 if code == "invalid_client" else 400,
        {
            "error": code,
            "error_description": f"AADSTS{number}: {message} Trace ID: 0 Correlation ID: 0",
            "error_codes": [number],
            "error_uri": f"https://login.microsoftonline.com/error?code={number}",
        },
    )


def _page(path: str, is_second: bool) -> dict[str, Any]:
    """A small subscription, of which the networks come in two pages."""
    what = path.rpartition("/")[2]
    base = path.partition("/providers/")[0]
    if what == "locations":
        return {"value": [{"name": "westeurope", "displayName": "West Europe"}]}
    if what == "virtualNetworks":
        name = "second" if is_second else "first"
        network = f"{base}/resourceGroups/suite/providers/Microsoft.Network/virtualNetworks/{name}"
        subnet = {"id": f"{network}/subnets/a", "name": "a", "properties": {"addressPrefix": "10.0.1.0/24"}}
        found = {
            "id": network, "name": name, "location": "westeurope",
            "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "subnets": [subnet]},
        }  # fmt: skip
        more = {} if is_second else {"nextLink": f"https://management.azure.com{path}?$skiptoken=second"}
        return {"value": [found]} | more
    if what == "dnszones":
        return {"value": [{"id": f"{base}/dns", "name": "example.com", "location": "global"}]}
    if "/subscriptions/" in path and path.count("/") == 2:
        return {"displayName": "Suite", "subscriptionId": what}
    return {"value": []}


if __name__ == "__main__":
    AzureGate.storage_port = int(sys.argv[1])
    serve(AzureGate, certificate=sys.argv[2], key=sys.argv[3])
