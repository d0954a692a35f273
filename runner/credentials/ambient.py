"""Ambient credentials: what the runner's machine has is what the job gets, by a list of names."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterator
from pathlib import Path

from runner.credentials.aws import AwsClients
from runner.credentials.handing import Handed, Occasion
from runner.credentials.own_azure import OwnAzure
from runner.credentials.own_files import secrets_in_files
from runner.credentials.own_gcp import OwnGcp
from runner.environment import secret_values

#: By cloud. Nothing else of the runner's environment reaches a job.
_NAMES = {
    "aws": (
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_*", "AWS_EC2_METADATA_*", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_*", "AWS_CA_BUNDLE", "AWS_STS_REGIONAL_ENDPOINTS", "AWS_USE_FIPS_ENDPOINT",
    ),
    "gcp": (
        "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_PROJECT",
        "GOOGLE_CLOUD_PROJECT", "GOOGLE_REGION", "GOOGLE_ZONE", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",
        "GOOGLE_CLOUD_UNIVERSE_DOMAIN", "GOOGLE_*_CUSTOM_ENDPOINT", "GCE_METADATA_*", "CLOUDSDK_CONFIG",
        "STORAGE_EMULATOR_HOST", "CLOUDSDK_API_ENDPOINT_OVERRIDES_*",
    ),
    "azure": (
        "ARM_*", "AZURE_TENANT_ID", "AZURE_CLIENT_*", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST",
        "AZURE_CONFIG_DIR", "AZURE_SUBSCRIPTION_ID", "AZURE_POD_IDENTITY_AUTHORITY_HOST", "IDENTITY_ENDPOINT",
        "IDENTITY_HEADER", "MSI_ENDPOINT", "MSI_SECRET",
    ),
}  # fmt: skip

#: A job has a home of its own, so the libraries are told where the runner's files are.
_FILES = {
    "aws": {"AWS_CONFIG_FILE": ".aws/config", "AWS_SHARED_CREDENTIALS_FILE": ".aws/credentials"},
    "gcp": {"CLOUDSDK_CONFIG": ".config/gcloud"},
    "azure": {"AZURE_CONFIG_DIR": ".azure"},
}


class Ambient:
    """The runner's own credentials, as one attempt uses them."""

    def __init__(self, occasion: Occasion) -> None:
        self._occasion = occasion
        hint = str(occasion.settings.get("provider_hint") or "")
        self.clouds = (hint,) if hint in _NAMES else tuple(_NAMES)

    def open(self) -> Handed:
        environ = dict(self._found())
        self._occasion.hide(*secret_values(environ, ()), *secrets_in_files(environ))
        return Handed(environ={}, defaults=environ, renewable=False, principal="the runner itself")

    def close(self) -> None:
        """Nothing was made."""

    @functools.cached_property
    def acting(self) -> AwsClients | OwnGcp | OwnAzure | None:
        """The runner itself in the cloud that the identity says; None where it says none."""
        match self.clouds:
            case ("aws",):
                return AwsClients(self._aws_region())
            case ("gcp",):
                return OwnGcp(self._occasion)
            case ("azure",):
                return OwnAzure(self._occasion)
        return None

    def _aws_region(self) -> str:
        regions = [str(region) for region in self._occasion.settings.get("regions") or ()]
        own = self._occasion.environ
        found = [*regions, own.get("AWS_REGION"), own.get("AWS_DEFAULT_REGION"), "us-east-1"]
        return next(region for region in found if region)

    def _found(self) -> Iterator[tuple[str, str]]:
        own = self._occasion.environ
        for cloud in self.clouds:
            for name, file in _FILES[cloud].items():
                path = Path(own.get("HOME", "/nonexistent")) / file
                if path.exists():
                    yield name, str(path)
            for name, value in own.items():
                if any(fnmatch.fnmatchcase(name, pattern) for pattern in _NAMES[cloud]):
                    yield name, value
