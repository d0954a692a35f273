"""The runner's own AWS credentials, which boto3 finds by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from runner.clouds.aws.clients import AwsClients
from runner.clouds.contract import AmbientSources, CredentialRequest
from runner.clouds.secret_files import whole_text

_SECRET_LINE = re.compile(r"^\s*aws_(?:secret_access_key|session_token)\s*=\s*(\S+)", re.MULTILINE)


def connect_ambient(request: CredentialRequest) -> AwsClients:
    """Return clients for the first region that the identity or the machine names."""
    regions = [str(region) for region in request.settings.get("regions") or ()]
    environ = request.environ
    candidates = [*regions, environ.get("AWS_REGION"), environ.get("AWS_DEFAULT_REGION"), "us-east-1"]
    return AwsClients(next(region for region in candidates if region))


def secret_lines(text: str) -> Iterator[str]:
    """Return the keys of a credentials file."""
    yield from _SECRET_LINE.findall(text)


SOURCES = AmbientSources(
    names=(
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_*", "AWS_EC2_METADATA_*", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_*", "AWS_CA_BUNDLE", "AWS_STS_REGIONAL_ENDPOINTS", "AWS_USE_FIPS_ENDPOINT",
    ),
    files={"AWS_CONFIG_FILE": ".aws/config", "AWS_SHARED_CREDENTIALS_FILE": ".aws/credentials"},
    secret_files={
        "AWS_SHARED_CREDENTIALS_FILE": secret_lines,
        "AWS_CONFIG_FILE": secret_lines,
        "AWS_WEB_IDENTITY_TOKEN_FILE": whole_text,
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": whole_text,
    },
)  # fmt: skip
