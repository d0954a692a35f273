"""The only doors to a Spec: the one place for its 403 and 404."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from console.accounts.access import organization_to_administer, organization_to_operate, organization_to_view
from console.accounts.models import Organization
from console.errors import NotFound, SpecArchived
from specs.models import Spec
from specs.spec_settings import GUARDED


def spec_to_view(user: Any, org_slug: str, spec_slug: str) -> Spec:
    return _spec(organization_to_view(user, org_slug), spec_slug)


def spec_to_operate(user: Any, org_slug: str, spec_slug: str) -> Spec:
    return require_unarchived(_spec(organization_to_operate(user, org_slug), spec_slug))


def spec_to_administer(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Return the Spec even if it is archived: restoring it needs this door."""
    return _spec(organization_to_administer(user, org_slug), spec_slug)


def require_unarchived(spec: Spec) -> Spec:
    if spec.archived_at is not None:
        raise SpecArchived(f"{spec.name} is archived. An admin can restore it on its page.")
    return spec


def spec_to_view_by_id(user: Any, spec_id: UUID) -> Spec:
    """Return a Spec by its id, for the API; refuse another organization's as missing."""
    spec = Spec.objects.select_related("organization", "pool").filter(pk=spec_id).first()
    if spec is None:
        raise NotFound
    organization_to_view(user, spec.organization.slug)
    return spec


def spec_to_operate_by_id(user: Any, spec_id: UUID) -> Spec:
    spec = spec_to_view_by_id(user, spec_id)
    organization_to_operate(user, spec.organization.slug)
    return require_unarchived(spec)


def spec_to_change(user: Any, org_slug: str, spec_slug: str, settings: Mapping[str, Any]) -> Spec:
    """Return a Spec whose settings this user may change; only admins weaken a protected Spec."""
    spec = spec_to_operate(user, org_slug, spec_slug)
    if _loosens(spec, settings):
        organization_to_administer(user, org_slug)
    return spec


def spec_to_change_by_id(user: Any, spec_id: UUID, settings: Mapping[str, Any]) -> Spec:
    spec = spec_to_operate_by_id(user, spec_id)
    if _loosens(spec, settings):
        organization_to_administer(user, spec.organization.slug)
    return spec


def _loosens(spec: Spec, settings: Mapping[str, Any]) -> bool:
    return spec.protected and any(settings[name] != getattr(spec, name) for name in GUARDED & settings.keys())


def _spec(organization: Organization, slug: str) -> Spec:
    spec = (
        Spec.objects.select_related("organization", "pool")
        .filter(organization=organization, slug=slug)
        .first()
    )
    if spec is None:
        raise NotFound
    return spec
