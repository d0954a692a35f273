"""Record the results of a deploy on its Spec: outputs, the sensitive ones sealed, and components."""

import json
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from console.accounts.models import User
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import NotFound
from console.live import topics
from console.live.publish import publish_on_commit
from console.vault import seal, unseal
from specs.catalogue import blueprint_of
from specs.models import Component, Output, Spec
from specs.snapshot import canonical

MAX_NAME_CHARS = 200

#: Outputs that become components by their name where the Spec has no blueprint.
KNOWN_COMPONENTS = {
    "cluster": ("cluster_endpoint",),
    "argocd": ("argocd_url",),
    "database": ("database_endpoint", "database_endpoints"),
    "dns_zone": ("dns_zone_name", "dns_zone"),
}


@transaction.atomic
def record_deploy(
    *, spec: Spec, outputs: dict[str, Any], sensitive_values: dict[str, Any] | None = None
) -> None:
    """Store the outputs of a deploy, and seal sensitive values. Well-known outputs become components."""
    spec.deployed_at, spec.destroyed_at = timezone.now(), None
    spec.save(update_fields=["deployed_at", "destroyed_at"])
    reported = {name[:MAX_NAME_CHARS]: output for name, output in outputs.items() if isinstance(output, dict)}
    spec.outputs.exclude(name__in=reported).delete()
    for name, output in reported.items():
        _save_output(spec, name, output, (sensitive_values or {}).get(name, output.get("value")))
    _update_components(spec, reported)
    publish_on_commit(topics.organization(spec.organization_id, "specs"))


@transaction.atomic
def record_destroy(*, spec: Spec) -> None:
    """Mark outputs and components as gone. Their names stay visible."""
    now = timezone.now()
    spec.destroyed_at = now
    spec.save(update_fields=["destroyed_at"])
    spec.outputs.update(gone_at=now, value=None, sealed_value=None)
    spec.components.filter(gone_at=None).update(gone_at=now)
    publish_on_commit(topics.organization(spec.organization_id, "specs"))


@transaction.atomic
def reveal_output(*, spec: Spec, name: str, revealed_to: User) -> Any:
    """Return the value of a sensitive output to one person, and record that."""
    output = spec.outputs.filter(name=name, gone_at=None).first()
    if output is None:
        raise NotFound(f"{spec.name} has no output {name!r}.")
    if not output.sensitive:
        return output.value
    if output.sealed_value is None:
        raise NotFound(f"The value of {name!r} was not stored. Deploy again to record it.")
    record(
        organization=spec.organization,
        actor=revealed_to,
        action=AuditAction.OUTPUT_REVEALED,
        target=spec,
        output=name,
    )
    return json.loads(unseal(output.sealed_value, context=output_context(spec.pk, name)))["value"]


def _save_output(spec: Spec, name: str, output: dict[str, Any], value: Any) -> None:
    sensitive = bool(output.get("sensitive"))
    sealed = None
    if sensitive and value is not None:
        sealed = seal(canonical({"value": value}), context=output_context(spec.pk, name))
    Output.objects.update_or_create(
        spec=spec,
        name=name,
        defaults={
            "type": output.get("type"),
            "value": None if sensitive else value,
            "sealed_value": sealed,
            "sensitive": sensitive,
            "gone_at": None,
        },
    )


def _update_components(spec: Spec, outputs: dict[str, Any]) -> None:
    """Update components from this deploy's outputs; mark those that it no longer reports as gone."""
    reported_kinds = []
    for kind, names in _component_outputs(spec).items():
        output_name = next((name for name in names if _has_visible_value(outputs.get(name))), None)
        if output_name is not None:
            reported_kinds.append(kind)
            Component.objects.update_or_create(
                spec=spec,
                kind=kind,
                defaults={"output": output_name, "value": outputs[output_name]["value"], "gone_at": None},
            )
    spec.components.filter(gone_at=None).exclude(kind__in=reported_kinds).update(gone_at=timezone.now())


def _component_outputs(spec: Spec) -> dict[str, tuple[str, ...]]:
    if spec.blueprint:
        try:
            components = blueprint_of(spec.organization, spec.blueprint).components
        except NotFound:  # taken out of the catalogue since
            components = {}
        if components:
            return {kind: (name,) for kind, name in components.items()}
    return KNOWN_COMPONENTS


def _has_visible_value(output: dict[str, Any] | None) -> bool:
    return (
        output is not None and not output.get("sensitive") and output.get("value") not in (None, "", [], {})
    )


def output_context(spec_id: UUID, name: str) -> str:
    return f"output:{spec_id}:{name}"
