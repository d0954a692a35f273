"""Google Cloud: workload identity federation with the console's token, then a service account.

Terraform gets a credential file without a secret in it: it names the token file and the two exchanges, which
Google's libraries make again whenever an access token runs out.
"""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from typing import Any

from runner.credentials.handing import Handed, Occasion, write_private
from runner.credentials.sdk import load
from runner.credentials.tokens import TOKEN, IdentityToken
from runner.outcome import StepFailed

SCOPE = "https://www.googleapis.com/auth/cloud-platform"

_PASSED = (
    "GOOGLE_CLOUD_UNIVERSE_DOMAIN", "GOOGLE_*_CUSTOM_ENDPOINT", "CLOUDSDK_API_ENDPOINT_OVERRIDES_*",
    "STORAGE_EMULATOR_HOST",
)  # fmt: skip
_OUTRANKED = (
    "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON",
    "GOOGLE_APPLICATION_CREDENTIALS",
)  # fmt: skip

#: Of the services whose versions belong to their addresses, as gcloud has it.
_PATHS = {"compute": "compute/v1", "dns": "dns/v1", "storage": "storage/v1"}


class GcpClients:
    """Access tokens that act as somebody, where Google's services are, and words for what they refuse."""

    #: Whom Google takes the tokens for.
    service_account = ""
    project = ""

    def __init__(self, occasion: Occasion) -> None:
        self._occasion = occasion
        self._transport = load("google.auth.transport.requests", extra="gcp")
        self._credentials: Any = None
        self._one_at_a_time = threading.Lock()

    def bearer(self) -> str:
        """An access token that is good for a while; raises what google-auth raises."""
        with self._one_at_a_time:
            if self._credentials is None:
                self._credentials = self._obtain()
            if not self._credentials.valid:
                self._credentials.refresh(self._transport.Request())
                self._occasion.hide(self._credentials.token)
            return str(self._credentials.token)

    @property
    def who(self) -> str:
        return self.service_account or "the runner's own account"

    @property
    def expires_at(self) -> datetime:
        """google-auth's times are UTC and do not say so."""
        expiry: datetime = self._credentials.expiry
        return expiry.replace(tzinfo=UTC)

    def endpoint(self, service: str) -> str:
        """Where a service answers: as gcloud's overrides say, else in the universe; without a last slash."""
        own = self._occasion.environ.get(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{service.upper()}")
        return (own or f"https://{service}.{self._universe}/{_PATHS.get(service, '')}").rstrip("/")

    def explain(self, error: Exception) -> str:
        """A refusal of Google's in one sentence, with what to do."""
        raise NotImplementedError

    def _obtain(self) -> Any:
        """google-auth's credentials, which renew themselves."""
        raise NotImplementedError

    @property
    def _universe(self) -> str:
        return self._occasion.environ.get("GOOGLE_CLOUD_UNIVERSE_DOMAIN") or "googleapis.com"


class Gcp(GcpClients):
    """One workload identity, as one attempt uses it."""

    def __init__(self, occasion: Occasion) -> None:
        super().__init__(occasion)
        self._identity_pool = load("google.auth.identity_pool", extra="gcp")
        self._provider = occasion.setting("provider")
        self.service_account = str(occasion.settings.get("service_account") or "")
        self.project = str(occasion.settings.get("project") or "")
        self._token = IdentityToken(occasion)
        self._file = occasion.directory / "google-credentials.json"

    def open(self) -> Handed:
        write_private(self._file, json.dumps(self._description()))
        try:
            self.bearer()
        except Exception as error:
            raise StepFailed("credentials_refused", self.explain(error), fatal=is_refusal(error)) from error
        project = {"GOOGLE_PROJECT": self.project, "GOOGLE_CLOUD_PROJECT": self.project}
        return Handed(
            # Without the second, a job whose federation fails would quietly act as the machine.
            environ={"GOOGLE_APPLICATION_CREDENTIALS": str(self._file), "NO_GCE_CHECK": "true"},
            defaults=project if self.project else {},
            outranked=_OUTRANKED,
            passed=_PASSED,
            expires_at=self.expires_at,
            renewed_by=TOKEN,
            principal=self.service_account or self._provider,
        )

    def close(self) -> None:
        """Nothing is left to undo: files go with the attempt's directory, tokens run out."""

    def explain(self, error: Exception) -> str:
        told = said(error)
        who = self.service_account or self._provider
        if "impersonated" in told:
            return (
                f"Google let the console's token in, but not as {self.service_account}: {told}. Grant the "
                "identity's subject the role roles/iam.workloadIdentityUser on that service account."
            )
        if is_refusal(error):
            return (
                f"Google did not accept the console's token for {self._provider}: {told}. Compare the "
                "provider's issuer, audience and attribute condition with the identity's page, and check the "
                "clocks."
            )
        return f"Google could not be asked as {who}: {told}."

    def _obtain(self) -> Any:
        return self._identity_pool.Credentials.from_info(self._description(), scopes=[SCOPE])

    def _description(self) -> dict[str, Any]:
        """In the form of `gcloud iam workload-identity-pools create-cred-config`."""
        account = f"projects/-/serviceAccounts/{self.service_account}:generateAccessToken"
        impersonation = {
            "service_account_impersonation_url": f"{self.endpoint('iamcredentials')}/v1/{account}"
        }
        return {
            "type": "external_account",
            "universe_domain": self._universe,
            "audience": f"//iam.{self._universe}/{self._provider}",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": f"{self.endpoint('sts')}/v1/token",
            "credential_source": {"file": str(self._token.path)},
            **(impersonation if self.service_account else {}),
        }


def is_refusal(error: Exception) -> bool:
    """Whether Google understood and said no."""
    return type(error).__name__ in ("OAuthError", "RefreshError") and not getattr(error, "retryable", False)


def said(error: Exception) -> str:
    """google-auth puts the whole answer into its arguments; its first line says what is meant."""
    first = str(error.args[0]) if error.args else type(error).__name__
    body = error.args[1] if len(error.args) > 1 else ""
    if isinstance(body, str) and body:
        try:
            problem = json.loads(body)["error"]
            first = f"{first} ({problem['message']})" if isinstance(problem, dict) else first
        except (ValueError, KeyError, TypeError):
            pass
    return first.strip().rstrip(".")
