"""The registry of clouds: a new one is a module beside these, and one name here."""

from console.errors import BadInput
from console.identities.clouds.ambient import Ambient
from console.identities.clouds.aws import Aws
from console.identities.clouds.azure import Azure
from console.identities.clouds.cloud import Cloud, Setting, Trust
from console.identities.clouds.gcp import Gcp
from console.identities.clouds.snippet import Snippet

__all__ = ["CLOUDS", "Cloud", "Setting", "Snippet", "Trust", "cloud_choices", "cloud_of"]

#: Every cloud by the value of `CloudIdentity.provider`, in the order in which pages offer them.
CLOUDS: dict[str, Cloud] = {}
for cloud in (Aws(), Gcp(), Azure(), Ambient(clouds=CLOUDS)):
    CLOUDS[cloud.key] = cloud


def cloud_of(provider: str) -> Cloud:
    """Return the cloud of that name, or refuse the name."""
    if provider not in CLOUDS:
        raise BadInput(f"provider: expected one of {', '.join(CLOUDS)}", field="provider")
    return CLOUDS[provider]


def cloud_choices() -> list[tuple[str, str]]:
    """Return the name and the label of each cloud, for the model and the API."""
    return [(cloud.key, cloud.label) for cloud in CLOUDS.values()]
