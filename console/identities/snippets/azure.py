"""What to run in Azure: a federated credential for each subject, and the role in the subscription."""

import json

from console.identities.issuer import audience_of, issuer
from console.identities.models import CloudIdentity
from console.identities.snippets.snippet import Snippet, aligned, hcl, script
from console.identities.subjects import allowed_specs, spec_subjects, test_subject

#: Entra takes this many federated credentials for one application.
MAX_FEDERATED = 20


def azure_snippets(identity: CloudIdentity) -> list[Snippet]:
    hint = (
        "Entra matches a subject exactly: one credential for the test, three for each Spec. Come back when "
        "another Spec uses this identity."
    )
    return [
        Snippet("cli", "az", hint, "sh", _az(identity)),
        Snippet("terraform", "Terraform", "The same as a configuration.", "hcl", _azure_terraform(identity)),
    ]


def federated(identity: CloudIdentity) -> list[tuple[str, str]]:
    """The name and the subject of each credential that Entra needs; as many as it takes."""
    found = [(f"slipway-{identity.slug}-test", test_subject(identity))]
    for spec in allowed_specs(identity):
        subjects = spec_subjects(identity, spec)
        found += [(f"slipway-{spec.slug}-{one.rpartition(':')[2]}", one) for one in subjects]
    return [(name[:120], one) for name, one in found[:MAX_FEDERATED]]


def _az(identity: CloudIdentity) -> str:
    client, subscription = identity.settings["client_id"], identity.settings["subscription_id"]
    commands = [
        ["az", "ad", "app", "federated-credential", "create", "--id", client, "--parameters",
         json.dumps({"name": name, "issuer": issuer(), "subject": one, "audiences": [audience_of(identity)]})]
        for name, one in federated(identity)
    ]  # fmt: skip
    commands.append(
        ["az", "role", "assignment", "create", "--assignee", client, "--role", "Reader",
         "--scope", f"/subscriptions/{subscription}"]
    )  # fmt: skip
    return script(commands, last="# Then assign the roles that your Specs build with.")


def _azure_terraform(identity: CloudIdentity) -> str:
    client, subscription = identity.settings["client_id"], identity.settings["subscription_id"]
    subjects = aligned(dict(federated(identity)))
    return f"""data "azuread_application" "slipway" {{
  client_id = {hcl(client)}
}}

data "azuread_service_principal" "slipway" {{
  client_id = {hcl(client)}
}}

resource "azuread_application_federated_identity_credential" "slipway" {{
  for_each = {{
{subjects}
  }}
  application_id = data.azuread_application.slipway.id
  display_name   = each.key
  issuer         = {hcl(issuer())}
  subject        = each.value
  audiences      = [{hcl(audience_of(identity))}]
}}

resource "azurerm_role_assignment" "slipway_read" {{
  scope                = {hcl(f"/subscriptions/{subscription}")}
  role_definition_name = "Reader"
  principal_id         = data.azuread_service_principal.slipway.object_id
}}
"""
