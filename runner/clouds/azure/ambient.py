"""The runner's own Azure credentials: a secret, a certificate, a federated token, or what the machine has.

By the names of Terraform's azurerm (ARM_…) and of Azure's libraries (AZURE_…), the former first.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from runner.clouds.azure.clients import AzureClients, error_text
from runner.clouds.contract import AmbientSources, CredentialRequest, CredentialsMissing
from runner.clouds.secret_files import whole_text

#: The machine's own identity is one hop away: it answers at once or does not exist.
_PATIENCE = {"connection_timeout": 2, "retry_total": 1, "retry_status": 1, "retry_connect": 0}

SOURCES = AmbientSources(
    names=(
        "ARM_*", "AZURE_TENANT_ID", "AZURE_CLIENT_*", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST",
        "AZURE_CONFIG_DIR", "AZURE_SUBSCRIPTION_ID", "AZURE_POD_IDENTITY_AUTHORITY_HOST", "IDENTITY_ENDPOINT",
        "IDENTITY_HEADER", "MSI_ENDPOINT", "MSI_SECRET",
    ),
    files={"AZURE_CONFIG_DIR": ".azure"},
    secret_files={"AZURE_FEDERATED_TOKEN_FILE": whole_text, "ARM_OIDC_TOKEN_FILE_PATH": whole_text},
)  # fmt: skip


class AmbientAzure(AzureClients):
    """Access to Azure as the runner's machine."""

    def __init__(self, request: CredentialRequest) -> None:
        super().__init__(request)
        self.tenant_id = self._variable("TENANT_ID")
        self.client_id = self._variable("CLIENT_ID")
        self.subscription_id = self._variable("SUBSCRIPTION_ID")
        self._source, self._credential = self._find_source()

    def identify(self) -> dict[str, str]:
        """Obtain a token, and describe its owner."""
        claims = _claims(self.bearer(self.management))
        self.client_id = self.client_id or str(claims.get("appid") or claims.get("oid") or "")
        if not self.subscription_id:
            raise CredentialsMissing(
                "The runner's environment names no subscription. Set ARM_SUBSCRIPTION_ID where the runner is."
            )
        return {"account": self.subscription_id, "application": self.client_id, "from": self._source}

    def principal(self) -> dict[str, str]:
        return {**self.identify(), "subscription": self.subscription_name()}

    def explain(self, error: Exception) -> str:
        if isinstance(error, CredentialsMissing):
            return str(error)
        return (
            f"Azure did not accept the runner's own {self._source}: {error_text(error)}. Renew it where "
            "the runner is, and check its clock."
        )

    def _find_source(self) -> tuple[str, Any]:
        """Return the source, and azure-identity's credential for it."""
        identity, application = self._identity, (self.tenant_id, self.client_id)
        if all(application):
            if secret := self._variable("CLIENT_SECRET"):
                self._request.hide(secret)
                credential = identity.ClientSecretCredential(*application, secret, **self._authority)
                return "client secret", credential
            if certificate := self._variable("CLIENT_CERTIFICATE_PATH"):
                password = self._variable("CLIENT_CERTIFICATE_PASSWORD") or None
                credential = identity.CertificateCredential(
                    *application, certificate, password=password, **self._authority
                )
                return "client certificate", credential
            if file := self._token_file():
                credential = identity.ClientAssertionCredential(
                    *application, lambda: _assertion(file), **self._authority
                )
                return f"federated token ({file})", credential
        return "managed identity", identity.ManagedIdentityCredential(
            client_id=self.client_id or None, **_PATIENCE
        )

    def _variable(self, name: str) -> str:
        environ = self._request.environ
        return environ.get(f"ARM_{name}") or environ.get(f"AZURE_{name}") or ""

    def _token_file(self) -> str:
        environ = self._request.environ
        return environ.get("ARM_OIDC_TOKEN_FILE_PATH") or environ.get("AZURE_FEDERATED_TOKEN_FILE") or ""


def _assertion(file: str) -> str:
    """Read the token anew each time: another program keeps it fresh."""
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        raise CredentialsMissing(
            f"The runner's token file {file} cannot be read: {error.strerror}. Correct its name, or put it "
            "there."
        ) from None


def _claims(token: str) -> dict[str, Any]:
    """Read the claims of an access token: only for people to see, since no signature is verified."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}
