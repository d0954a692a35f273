"""Microsoft Azure: an application that trusts the signed tokens of jobs, subject by subject."""

import json

from console.identities.clouds.checks import ascii_pattern, checked_regions, matching, required_uuid
from console.identities.clouds.cloud import REGIONS, Cloud, Setting, Settings, Trust
from console.identities.clouds.snippet import Snippet, aligned, hcl, script

REGION = ascii_pattern(r"[a-z]{4,30}\d{0,2}")
#: Entra takes this many federated credentials for one application.
MAX_FEDERATED = 20

FORM = (
    Setting(
        name="tenant_id", label="Tenant", placeholder="72f988bf-86f1-41af-91ab-2d7cd011db47", required=True
    ),
    Setting(
        name="client_id",
        label="Application (client)",
        hint="The app registration that jobs use.",
        required=True,
    ),
    Setting(name="subscription_id", label="Subscription", required=True),
    REGIONS,
)


class Azure(Cloud):
    key = "azure"
    label = "Azure"
    summary = "An application that trusts the signed tokens of jobs."
    form = FORM
    region_pattern = REGION
    region_example = "westeurope"

    def checked(self, settings: Settings) -> Settings:
        ids = {name: required_uuid(settings, name) for name in ("tenant_id", "client_id", "subscription_id")}
        check = matching("regions", REGION, "a region such as westeurope")
        return {**ids, "regions": checked_regions(settings, check)}

    def account(self, settings: Settings) -> str:
        return str(settings["subscription_id"])

    def audience(self, settings: Settings) -> str:
        return "api://AzureADTokenExchange"

    def setup(self, settings: Settings, trust: Trust) -> list[Snippet]:
        hint = (
            "Entra matches a subject exactly: one credential for the test, three for each Spec. Come back "
            "when another Spec uses this identity."
        )
        return [
            Snippet("cli", "az", hint, "sh", _commands(settings, trust)),
            Snippet(
                "terraform",
                "Terraform",
                "The same as a configuration.",
                "hcl",
                _configuration(settings, trust),
            ),
        ]


def _federated_credentials(trust: Trust) -> list[tuple[str, str]]:
    """Return the name and the subject of each credential that Entra needs; as many as it takes."""
    credentials = [(f"slipway-{trust.identity_slug}-test", trust.test_subject)]
    for spec in trust.specs:
        credentials += [
            (f"slipway-{spec.slug}-{action}", subject) for action, subject in spec.by_action.items()
        ]
    return [(name[:120], subject) for name, subject in credentials[:MAX_FEDERATED]]


def _commands(settings: Settings, trust: Trust) -> str:
    client, subscription = settings["client_id"], settings["subscription_id"]
    commands = [
        ["az", "ad", "app", "federated-credential", "create", "--id", client, "--parameters",
         json.dumps(
             {"name": name, "issuer": trust.issuer, "subject": subject, "audiences": [trust.audience]}
         )]
        for name, subject in _federated_credentials(trust)
    ]  # fmt: skip
    commands.append(
        ["az", "role", "assignment", "create", "--assignee", client, "--role", "Reader",
         "--scope", f"/subscriptions/{subscription}"]
    )  # fmt: skip
    return script(commands, last="# Then assign the roles that your Specs build with.")


def _configuration(settings: Settings, trust: Trust) -> str:
    client, subscription = settings["client_id"], settings["subscription_id"]
    subjects = aligned(dict(_federated_credentials(trust)))
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
  issuer         = {hcl(trust.issuer)}
  subject        = each.value
  audiences      = [{hcl(trust.audience)}]
}}

resource "azurerm_role_assignment" "slipway_read" {{
  scope                = {hcl(f"/subscriptions/{subscription}")}
  role_definition_name = "Reader"
  principal_id         = data.azuread_service_principal.slipway.object_id
}}
"""
