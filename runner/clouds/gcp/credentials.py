"""Workload identity federation with the console's token, then a service account.

Terraform gets a credential file without a secret in it: it names the token file and the two exchanges, which
Google's libraries repeat whenever an access token expires.
"""

from __future__ import annotations

import json
from typing import Any

from runner.clouds.contract import CredentialRequest, TerraformCredentials, write_private
from runner.clouds.gcp.clients import SCOPE, GcpClients, error_text, is_refusal, load
from runner.clouds.identity_token import TOKEN, IdentityToken
from runner.outcome import StepFailed

_PASSED = (
    "GOOGLE_CLOUD_UNIVERSE_DOMAIN", "GOOGLE_*_CUSTOM_ENDPOINT", "CLOUDSDK_API_ENDPOINT_OVERRIDES_*",
    "STORAGE_EMULATOR_HOST",
)  # fmt: skip
_OUTRANKED = (
    "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON",
    "GOOGLE_APPLICATION_CREDENTIALS",
)  # fmt: skip


class GcpWorkloadIdentity(GcpClients):
    """One workload identity, in use by one attempt."""

    def __init__(self, request: CredentialRequest) -> None:
        super().__init__(request)
        self._identity_pool = load("google.auth.identity_pool")
        self._provider = request.setting("provider")
        self.service_account = str(request.settings.get("service_account") or "")
        self.project = str(request.settings.get("project") or "")
        self._token = IdentityToken(request)
        self._file = request.directory / "google-credentials.json"

    @property
    def clients(self) -> GcpClients:
        return self

    def open(self) -> TerraformCredentials:
        write_private(self._file, json.dumps(self._configuration()))
        try:
            self.bearer()
        except Exception as error:
            raise StepFailed("credentials_refused", self.explain(error), fatal=is_refusal(error)) from error
        project = {"GOOGLE_PROJECT": self.project, "GOOGLE_CLOUD_PROJECT": self.project}
        return TerraformCredentials(
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
        """Do nothing: files are removed with the attempt's directory, tokens expire."""

    def explain(self, error: Exception) -> str:
        text = error_text(error)
        who = self.service_account or self._provider
        if "impersonated" in text:
            return (
                f"Google accepted the console's token, but not as {self.service_account}: {text}. Grant the "
                "identity's subject the role roles/iam.workloadIdentityUser on that service account."
            )
        if is_refusal(error):
            return (
                f"Google did not accept the console's token for {self._provider}: {text}. Compare the "
                "provider's issuer, audience and attribute condition with the identity's page, and check the "
                "clocks."
            )
        return f"Google could not be reached as {who}: {text}."

    def _obtain(self) -> Any:
        return self._identity_pool.Credentials.from_info(self._configuration(), scopes=[SCOPE])

    def _configuration(self) -> dict[str, Any]:
        """Return a configuration like that of `gcloud iam workload-identity-pools create-cred-config`."""
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
