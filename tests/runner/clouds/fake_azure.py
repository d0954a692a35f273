"""Entra's token endpoint, a machine's metadata service, Azure's lists, and a door to the blob emulator.

One process behind TLS. The clients reach it by the clouds' real names, through a proxy. It compares issuer,
subject and audience exactly, as Entra does, and gives out access tokens that open nothing else than itself.
"""

from __future__ import annotations

import sys
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt

from tests.runner.clouds.fake_server import Answer, Handler, as_json, forward, serve
from tests.runner.clouds.verification import Rejected, verify

_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
AUDIENCE = "api://AzureADTokenExchange"
#: Signs access tokens that only this process, and azurite in its lenient mode, looks at.
_OWN_KEY = "the suite's own signing key, which opens nothing outside of this process"


class FakeAzure(Handler):
    storage_port: int

    def handle_request(self, body: bytes) -> Answer:
        host = self.headers.get("Host", "").partition(":")[0]
        if host.endswith(".blob.core.windows.net"):
            return self._blob(body)
        if host == "management.azure.com":
            return self._management()
        if urlsplit(self.path).path == "/metadata/identity/oauth2/token":
            return self._managed_identity()
        return self._entra(body)

    def _entra(self, body: bytes) -> Answer:
        tenant, _, what = urlsplit(self.path).path.strip("/").partition("/")
        base = f"https://login.microsoftonline.com/{tenant}"
        if what == "discovery/instance":
            names = ["login.microsoftonline.com", "login.windows.net"]
            network = {"preferred_network": names[0], "preferred_cache": names[1], "aliases": names}
            discovery = f"{base}/v2.0/.well-known/openid-configuration"
            return as_json(200, {"tenant_discovery_endpoint": discovery, "metadata": [network]})
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
        settings = self.behaviour.settings
        application = settings.get("applications", {}).get(form.get("client_id", ""))
        if application is None or application["tenant"] != tenant:
            return _refusal("unauthorized_client", 700016, "Application was not found in the directory.")
        if form.get("client_secret"):
            return self._token_for_secret(tenant, form, application.get("secret"))
        if form.get("client_assertion_type") != _ASSERTION:
            return _refusal("invalid_client", 7000218, "The request body must contain a client_assertion.")
        try:
            claims = self._claims(form.get("client_assertion", ""), application)
        except Rejected as error:
            self.behaviour.record(action="token", rejected=error.reason)
            return _refusal("invalid_client", *_REFUSALS[error.reason])
        seconds = settings.get("session_seconds", 3600)
        self.behaviour.record(
            action="token", jti=claims["jti"], subject=claims["sub"], scope=form.get("scope")
        )
        return as_json(200, _token_answer(_access_token(tenant, form, seconds), seconds))

    def _token_for_secret(self, tenant: str, form: dict[str, str], secret: str | None) -> Answer:
        if form["client_secret"] != secret:
            return _refusal("invalid_client", 7000215, "Invalid client secret provided.")
        self.behaviour.record(action="token", secret=True)
        return as_json(200, _token_answer(_access_token(tenant, form, 3600)))

    def _managed_identity(self) -> Answer:
        """Answer as the metadata service of a machine in Azure."""
        machine = self.behaviour.settings.get("machine")
        if self.headers.get("Metadata") != "true" or machine is None:
            return as_json(400, {"error": "invalid_request", "error_description": "Identity not found"})
        resource = parse_qs(urlsplit(self.path).query)["resource"][0]
        self.behaviour.record(action="metadata", resource=resource)
        form = {"scope": f"{resource}/.default", "client_id": machine["client_id"]}
        token = _access_token(machine["tenant"], form, 3600)
        ends = str(int(time.time()) + 3600)
        return as_json(200, {**_token_answer(token), "expires_on": ends, "resource": resource})

    def _claims(self, assertion: str, application: dict[str, Any]) -> dict[str, Any]:
        claims = verify(
            assertion,
            issuers={application["issuer"]: [AUDIENCE]},
            settings=self.behaviour.settings,
        )
        if claims["sub"] not in application["subjects"]:
            raise Rejected("subject", "No matching federated identity record found for presented assertion.")
        return claims

    def _blob(self, body: bytes) -> Answer:
        if not self._is_open():
            return 401, {"x-ms-error-code": "InvalidAuthenticationInfo"}, b""
        self.behaviour.record(action=f"blob {self.command}", token=self.headers["Authorization"][-8:])
        return forward(self, self.storage_port, body, tls=True)

    def _management(self) -> Answer:
        if not self._is_open():
            return as_json(401, {"error": {"code": "InvalidAuthenticationToken", "message": "Expired."}})
        path = urlsplit(self.path).path
        for end in self.behaviour.settings.get("denied", ()):
            if path.endswith(end):
                message = "The client does not have authorization to perform action over scope."
                return as_json(403, {"error": {"code": "AuthorizationFailed", "message": message}})
        if self.behaviour.take("throttle", path.rpartition("/")[2]):
            return as_json(429, {"error": {"code": "TooManyRequests", "message": "Slow down."}})
        return as_json(200, _page(path, "second" in self.path))

    def _is_open(self) -> bool:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            claims = jwt.decode(token, _OWN_KEY, algorithms=["HS256"], options={"verify_aud": False})
        except jwt.PyJWTError:
            return False
        return bool(claims["iat"] >= self.behaviour.settings.get("over_before", 0))


def _token_answer(token: str, seconds: float = 3600) -> dict[str, Any]:
    return {
        "token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds, "access_token": token,
    }  # fmt: skip


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
        document = {
            "id": network, "name": name, "location": "westeurope",
            "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "subnets": [subnet]},
        }  # fmt: skip
        more = {} if is_second else {"nextLink": f"https://management.azure.com{path}?$skiptoken=second"}
        return {"value": [document]} | more
    if what == "dnszones":
        return {"value": [{"id": f"{base}/dns", "name": "example.com", "location": "global"}]}
    if "/subscriptions/" in path and path.count("/") == 2:
        return {"displayName": "Suite", "subscriptionId": what}
    return {"value": []}


if __name__ == "__main__":
    FakeAzure.storage_port = int(sys.argv[1])
    serve(FakeAzure, certificate=sys.argv[2], key=sys.argv[3])
