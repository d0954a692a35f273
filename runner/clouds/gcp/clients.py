"""Access tokens for Google's APIs, their addresses, and explanations of Google's refusals."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from typing import Any

from runner.clouds.contract import CloudClients, CredentialRequest
from runner.clouds.libraries import load_library

SCOPE = "https://www.googleapis.com/auth/cloud-platform"

#: The paths of services whose addresses include a version, as in gcloud's overrides.
_PATHS = {"compute": "compute/v1", "dns": "dns/v1", "storage": "storage/v1"}


class GcpClients(CloudClients):
    """Access to Google Cloud as a workload identity, or as the runner's machine."""

    #: The owner of the tokens.
    service_account = ""
    project = ""

    def __init__(self, request: CredentialRequest) -> None:
        self._request = request
        self._transport = load("google.auth.transport.requests")
        self._credentials: Any = None
        self._one_at_a_time = threading.Lock()

    def bearer(self) -> str:
        """Return a valid access token, and let google-auth's errors pass."""
        with self._one_at_a_time:
            if self._credentials is None:
                self._credentials = self._obtain()
            if not self._credentials.valid:
                self._credentials.refresh(self._transport.Request())
                self._request.hide(self._credentials.token)
            return str(self._credentials.token)

    @property
    def who(self) -> str:
        return self.service_account or "the runner's own account"

    @property
    def expires_at(self) -> datetime:
        """Return the end of the token: google-auth's times are UTC without saying so."""
        expiry: datetime = self._credentials.expiry
        return expiry.replace(tzinfo=UTC)

    def endpoint(self, service: str) -> str:
        """Return the address of a service: gcloud's override, or one in the universe."""
        own = self._request.environ.get(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{service.upper()}")
        return (own or f"https://{service}.{self._universe}/{_PATHS.get(service, '')}").rstrip("/")

    def principal(self) -> dict[str, str]:
        return {"account": self.project, "service_account": self.service_account}

    def _obtain(self) -> Any:
        """Make google-auth's credentials, which renew themselves."""
        raise NotImplementedError

    @property
    def _universe(self) -> str:
        return self._request.environ.get("GOOGLE_CLOUD_UNIVERSE_DOMAIN") or "googleapis.com"


def load(module: str) -> Any:
    """Import one of Google's own libraries."""
    return load_library(module, extra="gcp", cloud="Google Cloud")


def is_refusal(error: Exception) -> bool:
    """Return whether Google refused, other than by a temporary failure."""
    return type(error).__name__ in ("OAuthError", "RefreshError") and not getattr(error, "retryable", False)


def error_text(error: Exception) -> str:
    """Return the message: google-auth puts the whole answer into its arguments."""
    first = str(error.args[0]) if error.args else type(error).__name__
    body = error.args[1] if len(error.args) > 1 else ""
    if isinstance(body, str) and body:
        try:
            problem = json.loads(body)["error"]
            first = f"{first} ({problem['message']})" if isinstance(problem, dict) else first
        except (ValueError, KeyError, TypeError):
            pass
    return first.strip().rstrip(".")
