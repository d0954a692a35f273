"""The form of an identity: its fields with their values, and the reading of a posted form."""

from dataclasses import asdict, dataclass
from typing import Any

from django.http import QueryDict

from console.errors import BadInput
from console.identities.clouds import Cloud, Setting
from console.identities.clouds.cloud import NUMBER, WORDS
from console.identities.models import ANY, CloudIdentity
from console.identities.services import Allowed
from console.inputs import whole_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Field(Setting):
    """One setting with its value, as the form shows it."""

    value: str = ""

    @property
    def display(self) -> str:
        """Return the value as people read it: the label of a choice."""
        return dict(self.choices).get(self.value, self.value)


def empty_fields(cloud: Cloud) -> list[Field]:
    return [_field(setting, None) for setting in cloud.form]


def filled_fields(identity: CloudIdentity) -> list[Field]:
    return [_field(setting, identity.settings.get(setting.name)) for setting in identity.cloud.form]


def posted_settings(form: QueryDict, cloud: Cloud) -> dict[str, Any]:
    """Return the posted settings in the shape that the cloud checks."""
    return {setting.name: _value(setting, form.get(setting.name, "")) for setting in cloud.form}


def posted_allowed(form: QueryDict) -> Allowed:
    """Return the checked boxes; a browser sends nothing of the others."""
    return Allowed(
        specs=[ANY] if form.get("specs") == ANY else form.getlist("spec"),
        environments=[ANY] if form.get("environments") == ANY else form.get("environment", "").split(),
        pools=[ANY] if form.get("pools") == ANY else form.getlist("pool"),
    )


def _field(setting: Setting, stored: Any) -> Field:
    value = "" if stored is None else " ".join(stored) if isinstance(stored, list) else str(stored)
    return Field(**asdict(setting), value=value)


def _value(setting: Setting, text: str) -> Any:
    text = text.strip()
    if setting.control == WORDS:
        return text.replace(",", " ").split()
    if setting.control == NUMBER and text:
        number = whole_number(text)
        if number is None:
            raise BadInput(f"{setting.name}: expected a whole number", field=f"settings.{setting.name}")
        return number
    return text
