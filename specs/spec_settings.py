"""The settings of a Spec, which change without a new revision, and their valid values."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from console.errors import BadInput
from runner.protocol import JobType
from specs import hooks
from specs.json_limits import check_storable
from specs.models import Spec

SETTINGS = (
    "name", "environment", "description", "labels", "region", "identity", "terraform_version", "auto_apply",
    "protected", "required_approvals", "plan_max_age_hours", "destroy_guard", "expires_at", "gates",
)  # fmt: skip

#: Settings that only an admin changes on a protected Spec, so that nobody switches off their own approval.
GUARDED = frozenset(
    {"protected", "required_approvals", "plan_max_age_hours", "destroy_guard", "gates", "auto_apply"}
)

MAX_LABELS = 50
LABEL = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$")
#: What Terraform takes as `required_version`: `1.9.8`, `~> 1.9`, `>= 1.8, < 2.0`.
VERSION = re.compile(r"^\s*(=|!=|>=?|<=?|~>)?\s*\d+(\.\d+){0,2}(-[0-9A-Za-z.-]+)?\s*$")
#: How the clouds spell regions: eu-central-1, europe-west1, westeurope.
REGION = re.compile(r"^[a-z0-9][a-z0-9-]{0,59}$")
#: A resource type, also with * and ? for many.
RESOURCE_TYPE = re.compile(r"^[a-z0-9_*?-]{1,100}$")
GATE_KINDS = ("job_success", "approval")
MAX_APPROVALS = 20
#: Ten years: a plan that old is a mistake in the number.
MAX_PLAN_AGE_HOURS = 87_600


def apply_settings(spec: Spec, settings: dict[str, Any]) -> list[str]:
    """Apply all settings or none, and return the names of those that changed."""
    unknown = sorted(settings.keys() - set(SETTINGS))
    if unknown:
        raise BadInput(f"{unknown[0]} is not a setting of a Spec.", field=unknown[0])
    valid = {name: _validate(name, value) for name, value in settings.items() if name != "identity"}
    if "identity" in settings:
        valid["identity"] = _identity(spec, settings["identity"])
    changed_fields = [name for name, value in valid.items() if getattr(spec, name) != value]
    if "expires_at" in changed_fields:
        _require_future(valid["expires_at"])
    for name in changed_fields:
        setattr(spec, name, valid[name])
    return changed_fields


def _identity(spec: Spec, value: Any) -> Any:
    """Find an identity by id or name, without revealing other organizations' identities."""
    if value in (None, ""):
        return None
    return value if isinstance(value, Model) else hooks.identities.find(spec.organization, value)


def _validate(name: str, value: Any) -> Any:
    check_storable(value, field=name)
    if name in RULES:
        return RULES[name](value)
    field = Spec._meta.get_field(name)
    try:
        return field.clean(_clean_text(name, value), None)  # type: ignore[union-attr]
    except ValidationError as error:
        raise BadInput(f"{name}: {' '.join(error.messages)}", field=name) from error


def _clean_text(name: str, value: Any) -> Any:
    """Return the text, stripped. Django would accept a list as text, so anything else is refused."""
    if not isinstance(value, str):
        raise BadInput(f"{name}: expected text", field=name)
    if name == "name" and not value.strip():
        raise BadInput("name: give the Spec a name", field="name")
    return value.strip() if name != "description" else value


def _boolean(name: str) -> Callable[[Any], bool]:
    def validate(value: Any) -> bool:
        if not isinstance(value, bool):
            raise BadInput(f"{name}: expected true or false", field=name)
        return value

    return validate


def _whole_number(name: str, *, least: int, most: int) -> Callable[[Any], int]:
    def validate(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise BadInput(f"{name}: expected a whole number from {least} to {most}", field=name)
        return value

    return validate


def _labels(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise BadInput("labels: expected an object of names and texts", field="labels")
    if len(value) > MAX_LABELS:
        raise BadInput(f"labels: at most {MAX_LABELS} are allowed", field="labels")
    for name, text in value.items():
        if not LABEL.match(name) or len(text) > 200:
            raise BadInput(
                f"labels: {name[:63]!r} has up to 63 letters, digits and . _ / - as its name, and up to "
                "200 characters as its text",
                field="labels",
            )
    return value


def _terraform_version(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 60:
        raise BadInput("terraform_version: expected text of at most 60 characters", field="terraform_version")
    if value.strip() and not all(VERSION.match(part) for part in value.split(",")):
        raise BadInput(
            f"terraform_version: {value!r} is not a version. Write 1.9.8, ~> 1.9 or >= 1.8, < 2.0.",
            field="terraform_version",
        )
    return value.strip()


def _region(value: Any) -> str:
    if not isinstance(value, str):
        raise BadInput("region: expected text", field="region")
    region = value.strip()
    if region and not REGION.match(region):
        raise BadInput(
            f"region: {region[:60]!r} is not the name of a region, such as eu-central-1, europe-west1 or "
            "westeurope.",
            field="region",
        )
    return region


def _destroy_guard(value: Any) -> dict[str, Any]:
    """Check the destroy guard. Without a share, any share may be destroyed."""
    if not isinstance(value, dict):
        raise BadInput("destroy_guard: expected an object with share and types", field="destroy_guard")
    share, types = value.get("share"), value.get("types") or []
    if share is not None and not _is_share(share):
        raise BadInput("destroy_guard.share: expected a number from 0 to 1", field="destroy_guard")
    if not isinstance(types, list) or not all(isinstance(t, str) and RESOURCE_TYPE.match(t) for t in types):
        raise BadInput(
            "destroy_guard.types: expected resource types such as aws_db_instance or aws_db_*",
            field="destroy_guard",
        )
    return {"share": share, "types": sorted(set(types))}


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _expires_at(value: Any) -> datetime | None:
    if value in (None, ""):
        return None
    try:
        at = parse_datetime(value) if isinstance(value, str) else value
    except ValueError:
        at = None
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise BadInput(
            "expires_at: expected a time with a time zone, such as 2027-01-31T12:00:00Z, or null",
            field="expires_at",
        )
    return at.replace(microsecond=0)


def _require_future(at: datetime | None) -> None:
    """Refuse a time in the past: it would destroy the Spec's resources at once."""
    if at is not None and at <= timezone.now():
        raise BadInput(
            f"expires_at: {at:%Y-%m-%d %H:%M} UTC is in the past. Give a time in the future, or none. To "
            "remove the resources now, destroy the Spec.",
            field="expires_at",
        )


def _gates(value: Any) -> list[dict[str, Any]]:
    """The shape that `console/jobs/gates.py` reads."""
    if not isinstance(value, list):
        raise BadInput("gates: expected a list", field="gates")
    for index, gate in enumerate(value):
        if not isinstance(gate, dict) or gate.get("kind") not in GATE_KINDS:
            raise BadInput(f"gates[{index}].kind: expected {' or '.join(GATE_KINDS)}", field="gates")
        if gate["kind"] == "job_success" and gate.get("job_type") not in list(JobType):
            raise BadInput(f"gates[{index}].job_type: expected a type such as CONNECTION_TEST", field="gates")
        for name in ("max_age_days", "count"):
            number = 1 if gate.get(name) is None else gate[name]
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise BadInput(f"gates[{index}].{name}: expected a whole number from 1", field="gates")
    return value


RULES: dict[str, Callable[[Any], Any]] = {
    "labels": _labels,
    "region": _region,
    "terraform_version": _terraform_version,
    "auto_apply": _boolean("auto_apply"),
    "protected": _boolean("protected"),
    "required_approvals": _whole_number("required_approvals", least=1, most=MAX_APPROVALS),
    "plan_max_age_hours": _whole_number("plan_max_age_hours", least=0, most=MAX_PLAN_AGE_HOURS),
    "destroy_guard": _destroy_guard,
    "expires_at": _expires_at,
    "gates": _gates,
}
