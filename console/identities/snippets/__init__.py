"""What a person runs in an account so that it trusts this console: policies, commands, configurations.

Everything that is put into a text is either checked by `provider_settings`, a slug, or ours; all of it is
quoted for the language that it stands in, all the same.
"""

from collections.abc import Callable

from console.identities.models import CloudIdentity, Provider
from console.identities.snippets.aws import aws_snippets
from console.identities.snippets.azure import azure_snippets
from console.identities.snippets.gcp import gcp_snippets
from console.identities.snippets.snippet import Snippet

__all__ = ["Snippet", "snippets_for"]

MAKERS: dict[Provider, Callable[[CloudIdentity], list[Snippet]]] = {
    Provider.AWS: aws_snippets,
    Provider.GCP: gcp_snippets,
    Provider.AZURE: azure_snippets,
    Provider.AMBIENT: lambda identity: [],
}


def snippets_for(identity: CloudIdentity) -> list[Snippet]:
    return MAKERS[Provider(identity.provider)](identity)
