"""The staleness of a plan: exactly what changed since it was made. Names only, never values."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from console.jobs.intent import without_intent
from console.jobs.services import current_document
from console.plans.models import Plan
from specs.models import Spec
from specs.snapshot import snapshot_hash

#: Parts of a snapshot that hold things by name, and what one of them is called.
NAMED_PARTS = {"files": "file", "variables": "variable", "environment": "environment variable"}
#: What the other parts are called; one that is absent here goes by its own name.
LABELS = {
    "terraform_version": "the Terraform version",
    "source": "the source",
    "backend": "the state backend",
    "region": "the region",
    "identity": "the cloud identity",
}
#: More than this is counted, not listed.
LISTED = 5


@dataclass(frozen=True, slots=True)
class Staleness:
    """The reason why a plan is stale, what changed, and one sentence for people."""

    reason: str
    sentence: str
    changed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, slots=True)
class RememberedStaleness:
    """An answer that was given already; none is an answer too."""

    staleness: Staleness | None


def staleness_of(plan: Plan) -> Staleness | None:
    """Return what changed since the plan was made; None while it is fresh."""
    if plan.remembered_staleness is not None:
        return plan.remembered_staleness.staleness
    return _configuration_staleness(plan) or _state_staleness(plan) or _age_staleness(plan)


def remember_staleness(plan: Plan) -> Staleness | None:
    """Keep the answer for a page, which asks several times and shows one moment. Writers ask anew."""
    staleness = staleness_of(plan)
    plan.remembered_staleness = RememberedStaleness(staleness)
    return staleness


def differences(planned: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """List the differences between two snapshots by name: `file "main.tf" was removed`."""
    differences = [
        text
        for part in NAMED_PARTS
        for text in _named_differences(part, _entries(planned, part), _entries(now, part))
    ]
    keys = sorted((planned.keys() | now.keys()) - NAMED_PARTS.keys() - {"secrets"})
    differences += [f"{_label_of(key)} changed" for key in keys if planned.get(key) != now.get(key)]
    return differences


def _configuration_staleness(plan: Plan) -> Staleness | None:
    planned, now = without_intent(plan.job.config_snapshot), current_document(plan.spec)
    if snapshot_hash(planned) == snapshot_hash(now):
        return None
    changed = differences(planned, now) or ["the configuration changed"]
    return Staleness("configuration", f"{_join(changed)} since.", tuple(changed))


def _state_staleness(plan: Plan) -> Staleness | None:
    if (plan.job.config_snapshot.get("backend") or {}).get("kind", "console") != "console":
        return None  # kept elsewhere: the runner looks, right before the apply
    lineage, serial = _state_position(plan.spec)
    if lineage != plan.state_lineage and plan.state_lineage:
        return Staleness("state", "the state was replaced by another one since.")
    if (lineage, serial) == (plan.state_lineage, plan.state_serial):
        return None
    return Staleness("state", f"the state moved on since, from serial {plan.state_serial} to {serial}.")


def _age_staleness(plan: Plan) -> Staleness | None:
    allowed = timedelta(hours=plan.spec.plan_max_age_hours)
    age = timezone.now() - plan.created_at
    if not allowed or age <= allowed:
        return None
    hours = age // timedelta(hours=1)
    allowed_hours = plan.spec.plan_max_age_hours
    return Staleness("age", f"it is {hours} hours old, and {plan.spec.name} allows {allowed_hours}.")


def _state_position(spec: Spec) -> tuple[str, int]:
    """Return the lineage and serial of the Spec's newest state."""
    newest = spec.state_versions.order_by("-serial").values_list("lineage", "serial").first()
    return newest or ("", 0)


def _entries(snapshot: dict[str, Any], part: str) -> dict[str, Any]:
    """The things of one part by name; of a secret, only the digest that stands for it."""
    secrets = snapshot.get("secrets") or {}
    return {**(snapshot.get(part) or {}), **{name: (d,) for name, d in (secrets.get(part) or {}).items()}}


def _named_differences(part: str, planned: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for name in sorted(planned.keys() | now.keys()):
        if name not in now:
            yield f'{NAMED_PARTS[part]} "{name}" was removed'
        elif name not in planned:
            yield f'{NAMED_PARTS[part]} "{name}" was added'
        elif planned[name] != now[name]:
            yield f'{NAMED_PARTS[part]} "{name}" changed'


def _label_of(key: str) -> str:
    return LABELS.get(key, key.replace("_", " "))


def _join(changed: list[str]) -> str:
    if len(changed) > LISTED:
        return f"{', '.join(changed[:LISTED])} and {len(changed) - LISTED} more things changed"
    *most, last = changed
    return f"{', '.join(most)} and {last}" if most else last
