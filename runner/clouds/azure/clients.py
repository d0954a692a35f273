"""Access tokens of Azure's that act as somebody, and words for what Azure refuses."""

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
    """Access tokens that act as somebody, and words for what Azure refuses."""

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
        """Azure's API for everything but data; a sovereign cloud has its own."""
        return _MANAGEMENT.get(self._request.environ.get("ARM_ENVIRONMENT", "public"), _MANAGEMENT["public"])

    @property
    def who(self) -> str:
        return f"application {self.client_id}" if self.client_id else "the runner's own identity"

    def bearer(self, resource: str) -> str:
        """An access token for an API; raises what azure-identity raises."""
        given = self._credential.get_token(f"{resource}/.default")
        self._request.hide(given.token)
        self.expires_at = datetime.fromtimestamp(given.expires_on, UTC)
        return str(given.token)

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
        """An authority of one's own is unknown to Microsoft's directory of authorities."""
        own = self._request.environ.get("AZURE_AUTHORITY_HOST")
        return {"authority": own, "disable_instance_discovery": True} if own else {}


def load(module: str) -> Any:
    """Import one of Azure's own libraries."""
    return load_library(module, extra="azure", cloud="Azure")


def is_refusal(error: Exception) -> bool:
    """Entra's refusals carry a code that begins so; everything else is about the way there."""
    return "AADSTS" in str(error)


def error_text(error: Exception) -> str:
    """The first line: trace ids follow, and what azure-identity recommends to its own users."""
    text = str(error).removeprefix("Authentication failed: ")
    return text.splitlines()[0].strip().rstrip(".") if text else type(error).__name__
