"""State backends other than the console: S3, GCS, azurerm or pg, for an organization or for one Spec.

Settings travel in the job's snapshot and end up in a file on the runner, so they hold nothing secret.
What opens the backend is sealed, and reaches Terraform by environment only: with `-backend-config` it
would end up in the plan file.
"""

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from django.db import transaction
from django.db.models import Q

from console.accounts.models import Organization, User
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import BadInput, Conflict
from console.jobs.models import Job
from console.live import topics
from console.live.publish import publish_on_commit
from console.state.models import Backend, BackendKind
from console.state.selectors import newest_version
from console.vault import seal, unseal
from specs.models import Spec

CONSOLE = {"kind": BackendKind.CONSOLE.value}


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of one kind of backend."""

    required: dict[str, type]
    optional: dict[str, type]
    #: The setting that tells one spec's state from another's, and what it is when nobody says.
    place: str
    default_place: str
    environment: re.Pattern[str]


def _texts(*names: str) -> dict[str, type]:
    return dict.fromkeys(names, str)


def _switches(*names: str) -> dict[str, type]:
    return dict.fromkeys(names, bool)


RULES = {
    BackendKind.S3: Rules(
        required=_texts("bucket", "region"),
        optional=_texts("dynamodb_table", "kms_key_id", "acl")
        | _switches("use_lockfile", "encrypt", "use_path_style"),
        place="key",
        default_place="slipway/{organization}/{spec}.tfstate",
        environment=re.compile(r"AWS_[A-Z0-9_]+"),
    ),
    BackendKind.GCS: Rules(
        required=_texts("bucket"),
        optional=_texts("kms_encryption_key", "impersonate_service_account"),
        place="prefix",
        default_place="slipway/{organization}/{spec}",
        environment=re.compile(r"GOOGLE_[A-Z0-9_]+|STORAGE_EMULATOR_HOST"),
    ),
    BackendKind.AZURERM: Rules(
        required=_texts("storage_account_name", "container_name"),
        optional=_texts("resource_group_name", "subscription_id", "tenant_id", "client_id", "environment")
        | _switches("use_oidc", "use_azuread_auth", "use_msi", "snapshot"),
        place="key",
        default_place="slipway/{organization}/{spec}.tfstate",
        environment=re.compile(r"ARM_[A-Z0-9_]+"),
    ),
    BackendKind.PG: Rules(
        required={},
        optional=_switches("skip_schema_creation", "skip_table_creation", "skip_index_creation"),
        place="schema_name",
        default_place="slipway_{organization}_{spec}",
        environment=re.compile(r"PG[A-Z_]+"),
    ),
}


@transaction.atomic
def choose_backend(
    *,
    organization: Organization,
    spec: Spec | None,
    kind: str,
    settings: dict[str, Any],
    environment: dict[str, str] | None,
    chosen_by: User,
    state_was_moved: bool = False,
) -> Backend:
    """Keep the state of a spec, or of an organization's specs, in this backend from the next job on.

    With no environment given, the one that is sealed stays.
    """
    checked = _check_settings(kind, settings, for_one_spec=spec is not None)
    if spec is not None and kind != BackendKind.CONSOLE and not state_was_moved:
        _require_no_resources_here(spec)
    backend = (
        Backend.objects.select_for_update(of=("self",)).filter(organization=organization, spec=spec).first()
    )
    if backend is None or backend.kind != kind:
        environment = environment or {}
    backend = backend or Backend(organization=organization, spec=spec)
    backend.kind, backend.settings = kind, checked
    if environment is not None:
        backend.sealed_environment = _seal_environment(backend, _check_environment(kind, environment))
    backend.save()
    record(
        organization=organization,
        actor=chosen_by,
        action=AuditAction.STATE_BACKEND_CHOSEN,
        target=spec or organization,
        kind=kind,
        settings=checked,
    )
    publish_on_commit(topics.organization(organization.pk, "specs"))
    return backend


def backend_of(spec: Spec) -> Backend | None:
    """The backend of a spec: its own, else its organization's; None for this console.

    A spec whose state is here already stays here whatever its organization chooses later: its state would
    not move along, and the next plan would make everything anew.
    """
    backends = Backend.objects.filter(Q(spec=spec) | Q(spec=None), organization=spec.organization_id)
    by_spec = {backend.spec_id: backend for backend in backends}
    own, shared = by_spec.get(spec.pk), by_spec.get(None)
    if own is not None:
        return own if own.kind != BackendKind.CONSOLE else None
    if shared is None or shared.kind == BackendKind.CONSOLE or newest_version(spec) is not None:
        return None
    return shared


def backend_document(spec: Spec) -> dict[str, Any]:
    """The backend as a snapshot carries it: nothing in it is secret."""
    backend = backend_of(spec)
    if backend is None:
        return CONSOLE
    rules = RULES[BackendKind(backend.kind)]
    place = str(backend.settings.get(rules.place) or rules.default_place)
    return {"kind": backend.kind, "settings": backend.settings | {rules.place: _fill_place(place, spec)}}


def backend_field(spec: Spec) -> dict[str, Any]:
    """Add the backend to the snapshot of the Spec's next job: see `hooks.SnapshotFields`."""
    return {"backend": backend_document(spec)}


def backend_environment(job: Job, claim_id: UUID) -> dict[str, Any]:
    """Give a claim the credentials of the backend that the job's snapshot names."""
    if job.spec_id is None or job.config_snapshot.get("backend", CONSOLE) == CONSOLE:
        return {}
    backend = backend_of(Spec.objects.get(pk=job.spec_id))
    if backend is None:
        return {}
    environment = environment_of(backend)
    return {"environment": environment, "sensitive_variables": sorted(environment)}


def environment_of(backend: Backend) -> dict[str, str]:
    if backend.sealed_environment is None:
        return {}
    opened: dict[str, str] = orjson.loads(unseal(backend.sealed_environment, context=_context(backend)))
    return opened


def _seal_environment(backend: Backend, environment: dict[str, str]) -> bytes | None:
    return seal(orjson.dumps(environment), context=_context(backend)) if environment else None


def _context(backend: Backend) -> str:
    return f"state-backend:{backend.pk}"


def _fill_place(place: str, spec: Spec) -> str:
    return place.replace("{organization}", spec.organization.slug).replace("{spec}", spec.slug)


def _check_settings(kind: str, settings: dict[str, Any], *, for_one_spec: bool) -> dict[str, Any]:
    if kind == BackendKind.CONSOLE:
        return {}
    if kind not in BackendKind.values:
        raise BadInput(f"kind: expected one of {', '.join(BackendKind.values)}")
    rules = RULES[BackendKind(kind)]
    types = rules.required | rules.optional | {rules.place: str}
    for name, value in settings.items():
        _check_setting(kind, types, name, value)
    if missing := [name for name in rules.required if not settings.get(name)]:
        raise BadInput(f"{missing[0]}: the {kind} backend needs it")
    place = settings.get(rules.place)
    if place and not for_one_spec and "{spec}" not in place:
        raise BadInput(f"{rules.place}: must contain {{spec}}, or all Specs would share one state")
    return {name: value for name, value in settings.items() if value not in ("", None)}


def _check_setting(kind: str, types: dict[str, type], name: str, value: Any) -> None:
    if name not in types:
        allowed = ", ".join(sorted(types))
        raise BadInput(
            f"{name}: is not a setting that is taken here. What opens the backend belongs into its "
            f"environment; the settings of {kind} are {allowed}."
        )
    if not isinstance(value, types[name]):
        raise BadInput(f"{name}: expected {'yes or no' if types[name] is bool else 'a text'}")


def _check_environment(kind: str, environment: dict[str, str]) -> dict[str, str]:
    if kind == BackendKind.CONSOLE:
        return {}
    allowed = RULES[BackendKind(kind)].environment
    for name, value in environment.items():
        if not allowed.fullmatch(name) or "\0" in value:
            raise BadInput(f"{name}: the {kind} backend is opened by variables like {allowed.pattern}")
    return environment


def _require_no_resources_here(spec: Spec) -> None:
    newest = newest_version(spec)
    if newest is not None and newest.resource_count:
        raise Conflict(
            f"The state of {spec.name} is kept here and has {newest.resource_count} resources. Move it to "
            "the other backend first, then say that it was moved: otherwise the next plan would make "
            "everything anew."
        )
