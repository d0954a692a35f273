"""Access tokens for Azure's APIs, and explanations of Azure's refusals."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from runner.clouds.contract import CloudClients, CredentialRequest
from runner.clouds.libraries import load_library
from runner.clouds.rest import Reader

_MANAGEMENT = {
    "public": "https://management.azure.com",
    "usgovernment": "https://management.usgovcloudapi.net",
    "china": "https://management.chinacloudapi.cn",
}


class AzureClients(CloudClients):
    """Access to Azure as an application, or as the runner's machine."""

    tenant_id = ""
    client_id = ""
    subscription_id = ""
    _credential: Any

    def __init__(self, request: CredentialRequest) -> None:
        self._request = request
        self._identity = load("azure.identity")
        self.expires_at = datetime.now(UTC)

    @property
    def management(self) -> str:
        """Return the address of Azure Resource Manager; a sovereign cloud has its own."""
        return _MANAGEMENT.get(self._request.environ.get("ARM_ENVIRONMENT", "public"), _MANAGEMENT["public"])

    @property
    def who(self) -> str:
        return f"application {self.client_id}" if self.client_id else "the runner's own identity"

    def bearer(self, resource: str) -> str:
        """Return an access token for an API, and let azure-identity's errors pass."""
        token = self._credential.get_token(f"{resource}/.default")
        self._request.hide(token.token)
        self.expires_at = datetime.fromtimestamp(token.expires_on, UTC)
        return str(token.token)

    def principal(self) -> dict[str, str]:
        return {
            "account": self.subscription_id,
            "subscription": self.subscription_name(),
            "application": self.client_id,
        }

    def subscription_name(self) -> str:
        """Read the subscription, which proves that it can be seen."""
        url = f"{self.management}/subscriptions/{self.subscription_id}?api-version=2022-12-01"
        reader = Reader(lambda: self.bearer(self.management))
        return str(reader.document(url).get("displayName", ""))

    @property
    def _authority(self) -> dict[str, Any]:
        """Return options for another authority, which Microsoft's directory of them does not have."""
        own = self._request.environ.get("AZURE_AUTHORITY_HOST")
        return {"authority": own, "disable_instance_discovery": True} if own else {}


def load(module: str) -> Any:
    """Import one of Azure's own libraries."""
    return load_library(module, extra="azure", cloud="Azure")


def is_refusal(error: Exception) -> bool:
    """Return whether Entra refused, by the prefix of its codes; other errors are the network's."""
    return "AADSTS" in str(error)


def error_text(error: Exception) -> str:
    """Return the first line: trace ids follow, and advice for users of azure-identity."""
    text = str(error).removeprefix("Authentication failed: ")
    return text.splitlines()[0].strip().rstrip(".") if text else type(error).__name__
