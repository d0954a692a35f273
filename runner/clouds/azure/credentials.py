"""An application or a managed identity that accepts the console's token as a federated credential.

Terraform's azurerm reads a token file only once, and would keep a token that has expired. So it gets an
address on this machine instead, where it can ask again at any time, as in a GitHub workflow. Other tools read
the token file.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from runner.clouds.azure.clients import AzureClients, error_text, is_refusal
from runner.clouds.contract import CredentialRequest, TerraformCredentials
from runner.clouds.identity_token import TOKEN, IdentityToken
from runner.outcome import StepFailed

_PASSED = ("ARM_ENVIRONMENT", "ARM_METADATA_HOST", "ARM_METADATA_HOSTNAME", "AZURE_AUTHORITY_HOST")
_OUTRANKED = (
    "ARM_CLIENT_SECRET*", "ARM_CLIENT_CERTIFICATE*", "ARM_OIDC_*", "ARM_USE_MSI", "ARM_USE_CLI",
    "ARM_USE_AKS_WORKLOAD_IDENTITY", "ARM_CLIENT_ID", "ARM_TENANT_ID", "ARM_CLIENT_ID_FILE_PATH",
    "AZURE_CLIENT_*", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE",
)  # fmt: skip
#: Credentials that open the storage of a state by themselves.
_STORAGE_KEYS = ("ARM_ACCESS_KEY", "ARM_SAS_TOKEN")


class AzureApplication(AzureClients):
    """One federated application, in use by one attempt."""

    def __init__(self, request: CredentialRequest) -> None:
        super().__init__(request)
        self.tenant_id = request.setting("tenant_id")
        self.client_id = request.setting("client_id")
        self.subscription_id = str(request.settings.get("subscription_id") or "")
        self._token = IdentityToken(request)
        self._credential = self._identity.ClientAssertionCredential(
            self.tenant_id, self.client_id, lambda: self._token.text, **self._authority
        )
        self._tokens: _TokenServer | None = None

    @property
    def clients(self) -> AzureClients:
        return self

    def open(self) -> TerraformCredentials:
        try:
            self.bearer(self.management)
        except Exception as error:
            raise StepFailed("credentials_refused", self.explain(error), fatal=is_refusal(error)) from error
        self._tokens = _TokenServer(self._token)
        self._request.hide(self._tokens.password)
        return TerraformCredentials(
            environ=self._environ(self._tokens),
            outranked=_OUTRANKED,
            passed=_PASSED,
            expires_at=self.expires_at,
            renewed_by=TOKEN,
            principal=f"application {self.client_id} of tenant {self.tenant_id}",
        )

    def close(self) -> None:
        if self._tokens:
            self._tokens.close()

    def explain(self, error: Exception) -> str:
        text = error_text(error)
        if is_refusal(error):
            return (
                f"Azure did not accept the console's token for application {self.client_id}: {text}. Compare "
                "its federated credential with the identity's page: issuer, subject and audience must match "
                "exactly. Check the clocks as well."
            )
        return f"Azure could not be reached as application {self.client_id}: {text}."

    def _environ(self, tokens: _TokenServer) -> dict[str, str]:
        environ = {
            "ARM_USE_OIDC": "true",
            "ARM_USE_CLI": "false",
            "ARM_TENANT_ID": self.tenant_id,
            "ARM_CLIENT_ID": self.client_id,
            "ARM_OIDC_REQUEST_URL": tokens.url,
            "ARM_OIDC_REQUEST_TOKEN": tokens.password,
            "AZURE_TENANT_ID": self.tenant_id,
            "AZURE_CLIENT_ID": self.client_id,
            "AZURE_FEDERATED_TOKEN_FILE": str(self._token.path),
        }
        if self.subscription_id:
            environ["ARM_SUBSCRIPTION_ID"] = self.subscription_id
        if not any(name in self._request.job_environ for name in _STORAGE_KEYS):
            environ["ARM_USE_AZUREAD"] = "true"  # the state's storage opens to the same identity
        return environ


class _TokenServer:
    """Answers requests that know the password with the current token."""

    def __init__(self, token: IdentityToken) -> None:
        self.password = secrets.token_urlsafe(32)
        handler = type("Handler", (_TokenHandler,), {"token": token, "password": self.password})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/identity-token"
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="tokens", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _TokenHandler(BaseHTTPRequestHandler):
    token: IdentityToken
    password: str

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        password = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if hmac.compare_digest(password.encode(), self.password.encode()):
            self._answer(HTTPStatus.OK, {"count": 1, "value": self.token.text})
        else:
            self._answer(HTTPStatus.UNAUTHORIZED, {"message": "Only for one job's Terraform."})

    def _answer(self, status: HTTPStatus, document: dict[str, Any]) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
