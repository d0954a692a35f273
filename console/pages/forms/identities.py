"""The form of an identity: its fields for each provider, and what a filled one means."""

from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from console.errors import BadInput
from console.identities.models import ANY, CloudIdentity, Provider
from console.identities.provider_settings import ASSUME_ROLE, WEB_IDENTITY
from console.identities.services import Allowed
from console.inputs import whole_number

TEXT, LONG, CHOICE, NUMBER, WORDS = "text", "long", "choice", "number", "words"


@dataclass(frozen=True, slots=True)
class Field:
    """One setting as the form asks for it."""

    name: str
    label: str
    control: str = TEXT
    placeholder: str = ""
    hint: str = ""
    required: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    value: str = ""

    @property
    def shown(self) -> str:
        """The value as people read it: of a choice, its words."""
        return dict(self.choices).get(self.value, self.value)


REGIONS = Field(
    "regions",
    "Regions to look into",
    WORDS,
    hint="For pickers: separated by spaces. Empty: what the cloud has.",
)

FIELDS: dict[Provider, tuple[Field, ...]] = {
    Provider.AWS: (
        Field(
            "role_arn",
            "Role ARN",
            placeholder="arn:aws:iam::123456789012:role/slipway",
            hint="It need not exist yet: the next page has everything to make it.",
            required=True,
        ),
        Field("region", "Region", placeholder="eu-central-1", required=True),
        Field(
            "method",
            "How it is assumed",
            CHOICE,
            hint="With a token, the account trusts this console and no runner needs credentials of its own.",
            choices=(
                (WEB_IDENTITY, "With a signed token of each job (web identity)"),
                (ASSUME_ROLE, "From the runner’s own role, with an external id"),
            ),
        ),
        Field("session_seconds", "Session, in seconds", NUMBER, placeholder="3600", hint="900 to 43200."),
        Field(
            "plan_policy_arns",
            "Policies that narrow a PLAN",
            WORDS,
            placeholder="arn:aws:iam::aws:policy/ReadOnlyAccess",
            hint="A plan’s session may then do no more than these policies allow.",
        ),
        Field("plan_policy", "Or a policy of your own for a PLAN", LONG, placeholder="JSON"),
        Field(
            "regions", REGIONS.label, WORDS, hint="For pickers, separated by spaces. Empty: the region above."
        ),
    ),
    Provider.GCP: (
        Field(
            "provider",
            "Workload identity provider",
            placeholder="projects/123456789/locations/global/workloadIdentityPools/slipway/providers/slipway",
            hint="Its full name, with the project’s number. It need not exist yet.",
            required=True,
        ),
        Field(
            "service_account",
            "Service account",
            placeholder="slipway@my-project.iam.gserviceaccount.com",
            required=True,
        ),
        Field("project", "Project", placeholder="my-project", required=True),
        REGIONS,
    ),
    Provider.AZURE: (
        Field("tenant_id", "Tenant", placeholder="72f988bf-86f1-41af-91ab-2d7cd011db47", required=True),
        Field(
            "client_id",
            "Application (client)",
            hint="Of the app registration that jobs will be.",
            required=True,
        ),
        Field("subscription_id", "Subscription", required=True),
        REGIONS,
    ),
    Provider.AMBIENT: (
        Field(
            "provider_hint",
            "Which cloud that is",
            CHOICE,
            hint="So that a test can ask who the runner is there, and its resources can be looked up.",
            choices=(("", "none of these"), ("aws", "AWS"), ("gcp", "Google Cloud"), ("azure", "Azure")),
        ),
        REGIONS,
    ),
}


def fields_of(provider: str, identity: CloudIdentity | None = None) -> list[Field]:
    stored = identity.settings if identity else {}
    return [_filled(field, stored.get(field.name)) for field in FIELDS[Provider(provider)]]


def settings_in(form: QueryDict, provider: str) -> dict[str, Any]:
    """What was typed, in the shape that `provider_settings` checks."""
    return {field.name: _value(field, form.get(field.name, "")) for field in FIELDS[Provider(provider)]}


def allowed_in(form: QueryDict) -> Allowed:
    """The boxes that are checked; a browser sends nothing of the others."""
    return Allowed(
        specs=[ANY] if form.get("specs") == ANY else form.getlist("spec"),
        environments=[ANY] if form.get("environments") == ANY else form.get("environment", "").split(),
        pools=[ANY] if form.get("pools") == ANY else form.getlist("pool"),
    )


def _filled(field: Field, stored: Any) -> Field:
    if stored in (None, "", []):
        return field
    value = "  ".join(stored) if isinstance(stored, list) else str(stored)
    return Field(
        field.name, field.label, field.control, field.placeholder, field.hint, field.required, field.choices,
        value.replace("  ", " "),
    )  # fmt: skip


def _value(field: Field, text: str) -> Any:
    text = text.strip()
    if field.control == WORDS:
        return text.replace(",", " ").split()
    if field.control == NUMBER and text:
        number = whole_number(text)
        if number is None:
            raise BadInput(f"{field.name}: expected a whole number", field=f"settings.{field.name}")
        return number
    return text
