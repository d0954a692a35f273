"""The runner's own Google credentials: from the sources of Terraform's provider, and in its order.

`google.auth.default()` is not used: it asks Google for a project, and waits for an absent metadata server for
most of a minute.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

from runner.clouds.contract import AmbientSources, CredentialRequest, CredentialsMissing
from runner.clouds.gcp.clients import SCOPE, GcpClients, error_text, load
from runner.clouds.secret_files import json_fields

#: A metadata server is one hop away; without one, nothing answers.
_METADATA_SECONDS = 2.0
_METADATA_ADDRESS = "169.254.169.254"
_METADATA_HEADERS = {"Metadata-Flavor": "Google"}

_GCLOUD_FILE = "application_default_credentials.json"

SOURCES = AmbientSources(
    names=(
        "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_PROJECT",
        "GOOGLE_CLOUD_PROJECT", "GOOGLE_REGION", "GOOGLE_ZONE", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",
        "GOOGLE_CLOUD_UNIVERSE_DOMAIN", "GOOGLE_*_CUSTOM_ENDPOINT", "GCE_METADATA_*", "CLOUDSDK_CONFIG",
        "STORAGE_EMULATOR_HOST", "CLOUDSDK_API_ENDPOINT_OVERRIDES_*",
    ),
    files={"CLOUDSDK_CONFIG": ".config/gcloud"},
    secret_files={"GOOGLE_APPLICATION_CREDENTIALS": json_fields, "GOOGLE_CREDENTIALS": json_fields},
)  # fmt: skip


class AmbientGcp(GcpClients):
    """Access to Google Cloud as the runner's machine."""

    def __init__(self, request: CredentialRequest) -> None:
        super().__init__(request)
        environ = request.environ
        variables = ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT")
        self.project = next((environ[name] for name in variables if environ.get(name)), "")
        self._source = ""

    def identify(self) -> dict[str, str]:
        """Obtain a token, and describe its owner."""
        self.bearer()
        email = str(getattr(self._credentials, "service_account_email", "") or "")
        self.service_account = email if "@" in email else ""
        if not self.project:
            raise CredentialsMissing(
                "The runner's environment names no project. Set GOOGLE_CLOUD_PROJECT where the runner is."
            )
        return {"account": self.project, "service_account": self.service_account, "from": self._source}

    def principal(self) -> dict[str, str]:
        return self.identify()

    def explain(self, error: Exception) -> str:
        if isinstance(error, CredentialsMissing):
            return str(error)
        where = self._source or "Google credentials"
        return (
            f"Google did not accept the runner's own {where}: {error_text(error)}. Renew them where the "
            "runner is, and check its clock."
        )

    def _obtain(self) -> Any:
        environ = self._request.environ
        if token := environ.get("GOOGLE_OAUTH_ACCESS_TOKEN"):
            self._source = "GOOGLE_OAUTH_ACCESS_TOKEN"
            return load("google.oauth2.credentials").Credentials(token)
        if value := environ.get("GOOGLE_CREDENTIALS"):
            self._source = "GOOGLE_CREDENTIALS"
            return self._parse(value if value.lstrip().startswith("{") else _read(value))
        for source, path in self._files():
            self._source = source
            return self._parse(_read(path))
        return self._from_metadata()

    def _files(self) -> list[tuple[str, str]]:
        """Return the credential file: one that is named must exist, gcloud's own may."""
        environ = self._request.environ
        if path := environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
            return [(f"GOOGLE_APPLICATION_CREDENTIALS ({path})", path)]
        home = Path(environ.get("HOME", "/nonexistent"))
        gcloud_file = Path(environ.get("CLOUDSDK_CONFIG") or home / ".config/gcloud") / _GCLOUD_FILE
        return [(f"credentials of gcloud ({gcloud_file})", str(gcloud_file))] if gcloud_file.exists() else []

    def _parse(self, text: str) -> Any:
        """Make credentials of the type that their JSON names."""
        try:
            info = json.loads(text)
            kind = str(info["type"])
        except (ValueError, KeyError, TypeError):
            raise CredentialsMissing(
                f"The runner's {self._source} is not a credential file of Google's. Correct it."
            ) from None
        self.project = self.project or str(info.get("project_id") or info.get("quota_project_id") or "")
        make = {
            "service_account": _service_account,
            "external_account": _external_account,
            "authorized_user": _authorized_user,
            "impersonated_service_account": _impersonated,
        }.get(kind)
        if make is None:
            raise CredentialsMissing(
                f"The runner's {self._source} is of the kind {kind[:60]!r}, which this runner cannot "
                "use. Give it a service account's key or an external account."
            )
        return make(info)

    def _from_metadata(self) -> Any:
        """Take credentials from the metadata server of a machine in Google Cloud."""
        if self._request.environ.get("NO_GCE_CHECK") == "true" or not self._is_in_google_cloud():
            raise CredentialsMissing(
                "The runner has no Google credentials of its own: neither a file nor a metadata server. Set "
                "GOOGLE_APPLICATION_CREDENTIALS where the runner is, or give its machine a service account."
            )
        self._source = "service account of the machine"
        return load("google.auth.compute_engine").Credentials(scopes=[SCOPE])

    def _is_in_google_cloud(self) -> bool:
        """Ask the metadata server for the project, which tells whether there is one."""
        environ = self._request.environ
        host = environ.get("GCE_METADATA_HOST") or environ.get("GCE_METADATA_IP") or _METADATA_ADDRESS
        try:
            answer = httpx.get(
                f"http://{host}/computeMetadata/v1/project/project-id",
                headers=_METADATA_HEADERS,
                timeout=_METADATA_SECONDS,
                trust_env=False,
            )
        except httpx.TransportError:
            return False
        is_google = answer.is_success and answer.headers.get("Metadata-Flavor") == "Google"
        self.project = self.project or (answer.text.strip() if is_google else "")
        return is_google


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError as error:
        raise CredentialsMissing(
            f"The runner's credential file {path} cannot be read: {error.strerror}. Correct its name, or put "
            "it there."
        ) from None


def _service_account(info: dict[str, Any]) -> Any:
    credentials = load("google.oauth2.service_account").Credentials
    return credentials.from_service_account_info(info, scopes=[SCOPE])


def _authorized_user(info: dict[str, Any]) -> Any:
    return load("google.oauth2.credentials").Credentials.from_authorized_user_info(info)


def _impersonated(info: dict[str, Any]) -> Any:
    credentials = load("google.auth.impersonated_credentials").Credentials
    return credentials.from_impersonated_service_account_info(info, scopes=[SCOPE])


def _external_account(info: dict[str, Any]) -> Any:
    """Federate with AWS, the output of a program, or a token in a file or at an address."""
    source = info.get("credential_source") or {}
    module = "google.auth.identity_pool"
    if str(source.get("environment_id", "")).startswith("aws"):
        module = "google.auth.aws"
    elif "executable" in source:
        module = "google.auth.pluggable"
    return load(module).Credentials.from_info(info, scopes=[SCOPE])
