"""Create, change and delete variable sets."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from console.accounts.models import Organization, User
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import BadInput, NotFound
from console.live import topics
from console.live.publish import publish_on_commit
from specs.json_limits import check_storable
from specs.models import Spec, VariableSet
from specs.variables import Bundle, bundle_of, empty_bundle, set_plain, set_secret, without_variable


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableAssignment:
    """One variable of a request. With `keep`, a sensitive one keeps its current value."""

    name: str
    category: str = "variables"
    value: Any = None
    sensitive: bool = False
    keep: bool = False


@transaction.atomic
def save_variable_set(
    *,
    organization: Organization,
    name: str,
    bundle: Bundle,
    saved_by: User,
    description: str = "",
    priority: int = 0,
    for_all_specs: bool = False,
    specs: list[str] | None = None,
) -> VariableSet:
    """Create the set, or replace its content. Plans of the Specs that use it become stale."""
    if not name.strip():
        raise BadInput("Give the set a name.", field="name")
    check_storable({"name": name, "description": description, "variables": bundle}, field="variable set")
    attached = _find_specs(organization, specs or [])
    variable_set, created = VariableSet.objects.update_or_create(
        organization=organization,
        name=name.strip(),
        defaults={
            "description": description,
            "priority": priority,
            "for_all_specs": for_all_specs,
            "variables": bundle_of(bundle),
        },
    )
    variable_set.specs.set(attached)
    _record_event(
        variable_set,
        saved_by,
        AuditAction.VARIABLE_SET_CREATED if created else AuditAction.VARIABLE_SET_CHANGED,
    )
    return variable_set


@transaction.atomic
def change_variable_in_set(
    *, variable_set: VariableSet, assignment: VariableAssignment, changed_by: User
) -> VariableSet:
    locked = VariableSet.objects.select_for_update().get(pk=variable_set.pk)
    bundle = build_bundle([assignment], organization=locked.organization, base=bundle_of(locked.variables))
    return _save_variables(locked, bundle, changed_by)


@transaction.atomic
def remove_variable_from_set(
    *, variable_set: VariableSet, category: str, name: str, changed_by: User
) -> VariableSet:
    locked = VariableSet.objects.select_for_update().get(pk=variable_set.pk)
    bundle = without_variable(bundle_of(locked.variables), category=category, name=name)
    return _save_variables(locked, bundle, changed_by)


@transaction.atomic
def delete_variable_set(*, variable_set: VariableSet, deleted_by: User) -> None:
    _record_event(variable_set, deleted_by, AuditAction.VARIABLE_SET_DELETED)
    variable_set.delete()


def build_bundle(
    assignments: list[VariableAssignment],
    *,
    organization: Organization,
    base: Bundle | None = None,
    previous: Bundle | None = None,
) -> Bundle:
    """Build a bundle of these variables. `previous` has the digests of sensitive values to keep."""
    bundle = base or empty_bundle()
    for assignment in assignments:
        if assignment.sensitive and assignment.keep:
            bundle = _keep_secret_of(bundle, assignment, previous or empty_bundle())
        elif assignment.sensitive:
            check_storable(assignment.value, field=f"variables.{assignment.name}")
            bundle = set_secret(
                bundle,
                category=assignment.category,
                name=assignment.name,
                value=assignment.value,
                organization_id=organization.pk,
            )
        elif assignment.keep:
            raise BadInput(f"{assignment.name}: give it a value.", field=f"variables.{assignment.name}")
        else:
            bundle = set_plain(
                bundle, category=assignment.category, name=assignment.name, value=assignment.value
            )
    return bundle


def variable_set_of(organization: Organization, name: str) -> VariableSet:
    variable_set = VariableSet.objects.filter(organization=organization, name=name).first()
    if variable_set is None:
        raise NotFound(f"{organization.name} has no variable set {name!r}.")
    return variable_set


def _keep_secret_of(bundle: Bundle, assignment: VariableAssignment, previous: Bundle) -> Bundle:
    digest = previous["secrets"].get(assignment.category, {}).get(assignment.name)
    if digest is None:
        raise BadInput(
            f"{assignment.name} has no sensitive value to keep. Give it one.",
            field=f"variables.{assignment.name}",
        )
    new_bundle = bundle_of(bundle)
    new_bundle["secrets"][assignment.category][assignment.name] = digest
    return new_bundle


def _save_variables(variable_set: VariableSet, bundle: Bundle, changed_by: User) -> VariableSet:
    check_storable(bundle, field="variables")
    variable_set.variables = bundle
    variable_set.save(update_fields=["variables", "updated_at"])
    _record_event(variable_set, changed_by, AuditAction.VARIABLE_SET_CHANGED)
    return variable_set


def _find_specs(organization: Organization, slugs: list[str]) -> list[Spec]:
    specs = list(Spec.objects.filter(organization=organization, slug__in=slugs))
    missing = sorted(set(slugs) - {spec.slug for spec in specs})
    if missing:
        raise NotFound(f"There is no Spec {missing[0]!r}.")
    return specs


def _record_event(variable_set: VariableSet, actor: User, action: AuditAction) -> None:
    record(
        organization=variable_set.organization,
        actor=actor,
        action=action,
        target=variable_set,
        name=variable_set.name,
    )
    publish_on_commit(topics.organization(variable_set.organization_id, "specs"))
