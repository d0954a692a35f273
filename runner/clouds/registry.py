"""The registry of clouds: a cloud is one folder beside this file, and one name in the list below."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from runner.clouds.ambient.credentials import AmbientCredentials
from runner.clouds.contract import Cloud, CredentialRequest, Credentials, TerraformCredentials
from runner.outcome import StepFailed
from runner.protocol import IdentityAccess
from runner.terraform.environment import matches

#: Each is the provider in the protocol, a package here that offers a `CLOUD`, and an extra of the install.
NAMES = (
    "aws",
    "gcp",
    "azure",
)

CLOUDS: dict[str, Cloud] = {name: import_module(f"runner.clouds.{name}").CLOUD for name in NAMES}

#: The provider of identities that use what the runner's machine has, in whichever cloud.
AMBIENT = "ambient"


def connect(request: CredentialRequest) -> Credentials:
    """Return the identity's credentials. Asks the console for a token where one is needed."""
    provider = request.identity.provider
    if provider == AMBIENT:
        return AmbientCredentials(request, CLOUDS)
    if provider not in CLOUDS:
        raise StepFailed(
            "provider_unknown",
            f"This runner does not know the cloud {provider!r}. Update the runner.",
            fatal=True,
        )
    return CLOUDS[provider].connect(request)


def cloud_name(identity: IdentityAccess | None) -> str:
    """Return the name of the cloud that an identity acts in; empty where nobody said."""
    if identity is None:
        return ""
    name = str(identity.settings.get("provider_hint") or identity.provider)
    return name if name in CLOUDS else ""


def region_environment(region: str, *, cloud: str) -> dict[str, str]:
    """Return the variables in which a cloud's tools look for the region; of all clouds for an unknown one."""
    clouds = [CLOUDS[cloud]] if cloud in CLOUDS else CLOUDS.values()
    return {name: region for each in clouds for name in each.region_variables} if region else {}


def with_credentials(
    environ: Mapping[str, str], credentials: TerraformCredentials, *, runner_environ: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Add credentials to Terraform's environment; also return the names that they take precedence over."""
    outranked = sorted(name for name in environ if matches(name, credentials.outranked))
    remaining = {name: value for name, value in environ.items() if name not in outranked}
    passed = {name: value for name, value in runner_environ.items() if matches(name, credentials.passed)}
    return {**passed, **credentials.defaults, **remaining, **credentials.environ}, outranked
