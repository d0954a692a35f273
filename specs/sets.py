"""What happens to variable sets."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from console.accounts.models import Organization, User
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import BadInput, NotFound
from console.live import topics
from console.live.publish import publish_on_commit
from specs.models import Spec, VariableSet
from specs.storable import check_storable
from specs.variables import Bundle, bundle_of, empty, set_plain, set_secret, without


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenVariable:
    """One variable as a person gives it. A sensitive one without a value keeps the value that it has."""

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
    """Make the set, or give it exactly this content. Plans of the specs that use it become stale."""
    if not name.strip():
        raise BadInput("Give the set a name.", field="name")
    check_storable({"name": name, "description": description, "variables": bundle}, field="variable set")
    attached = _specs(organization, specs or [])
    saved, created = VariableSet.objects.update_or_create(
        organization=organization,
        name=name.strip(),
        defaults={
            "description": description,
            "priority": priority,
            "for_all_specs": for_all_specs,
            "variables": bundle_of(bundle),
        },
    )
    saved.specs.set(attached)
    _note(saved, saved_by, AuditAction.VARIABLE_SET_CREATED if created else AuditAction.VARIABLE_SET_CHANGED)
    return saved


@transaction.atomic
def change_set_variable(*, variable_set: VariableSet, given: GivenVariable, changed_by: User) -> VariableSet:
    locked = VariableSet.objects.select_for_update().get(pk=variable_set.pk)
    bundle = given_bundle([given], organization=locked.organization, onto=bundle_of(locked.variables))
    return _save_variables(locked, bundle, changed_by)


@transaction.atomic
def remove_set_variable(
    *, variable_set: VariableSet, category: str, name: str, changed_by: User
) -> VariableSet:
    locked = VariableSet.objects.select_for_update().get(pk=variable_set.pk)
    bundle = without(bundle_of(locked.variables), category=category, name=name)
    return _save_variables(locked, bundle, changed_by)


@transaction.atomic
def delete_variable_set(*, variable_set: VariableSet, deleted_by: User) -> None:
    _note(variable_set, deleted_by, AuditAction.VARIABLE_SET_DELETED)
    variable_set.delete()


def given_bundle(
    given: list[GivenVariable],
    *,
    organization: Organization,
    onto: Bundle | None = None,
    kept: Bundle | None = None,
) -> Bundle:
    """A bundle of these variables; `kept` has the digests that stay where a sensitive value is not given."""
    bundle = onto or empty()
    for one in given:
        if one.sensitive and one.keep:
            bundle = _kept_secret(bundle, one, kept or empty())
        elif one.sensitive:
            check_storable(one.value, field=f"variables.{one.name}")
            bundle = set_secret(
                bundle,
                category=one.category,
                name=one.name,
                value=one.value,
                organization_id=organization.pk,
            )
        elif one.keep:
            raise BadInput(f"{one.name}: give it a value.", field=f"variables.{one.name}")
        else:
            bundle = set_plain(bundle, category=one.category, name=one.name, value=one.value)
    return bundle


def variable_set_of(organization: Organization, name: str) -> VariableSet:
    found = VariableSet.objects.filter(organization=organization, name=name).first()
    if found is None:
        raise NotFound(f"{organization.name} has no variable set {name!r}.")
    return found


def _kept_secret(bundle: Bundle, given: GivenVariable, kept: Bundle) -> Bundle:
    digest = kept["secrets"].get(given.category, {}).get(given.name)
    if digest is None:
        raise BadInput(
            f"{given.name} has no sensitive value that could be kept. Give it one.",
            field=f"variables.{given.name}",
        )
    changed = bundle_of(bundle)
    changed["secrets"][given.category][given.name] = digest
    return changed


def _save_variables(variable_set: VariableSet, bundle: Bundle, changed_by: User) -> VariableSet:
    check_storable(bundle, field="variables")
    variable_set.variables = bundle
    variable_set.save(update_fields=["variables", "updated_at"])
    _note(variable_set, changed_by, AuditAction.VARIABLE_SET_CHANGED)
    return variable_set


def _specs(organization: Organization, slugs: list[str]) -> list[Spec]:
    found = list(Spec.objects.filter(organization=organization, slug__in=slugs))
    missing = sorted(set(slugs) - {spec.slug for spec in found})
    if missing:
        raise NotFound(f"There is no Spec {missing[0]!r}.")
    return found


def _note(variable_set: VariableSet, actor: User, action: AuditAction) -> None:
    record(
        organization=variable_set.organization,
        actor=actor,
        action=action,
        target=variable_set,
        name=variable_set.name,
    )
    publish_on_commit(topics.organization(variable_set.organization_id, "specs"))
