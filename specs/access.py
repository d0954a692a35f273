"""The only doors to a Spec, to an organization's variable sets and to its blueprints."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from console.accounts.access import require_right
from console.accounts.models import Organization
from console.accounts.rights import Right
from console.errors import NotFound, SpecArchived
from specs.models import Spec
from specs.spec_settings import GUARDED


def organization_to_manage_specs(user: Any, slug: str) -> Organization:
    """Create Specs, and go through the first-run guide that leads there."""
    return require_right(user, slug, Right.MANAGE_SPECS)


def organization_to_manage_variable_sets(user: Any, slug: str) -> Organization:
    return require_right(user, slug, Right.MANAGE_VARIABLE_SETS)


def organization_to_manage_blueprints(user: Any, slug: str) -> Organization:
    return require_right(user, slug, Right.MANAGE_BLUEPRINTS)


def spec_to_view(user: Any, org_slug: str, spec_slug: str) -> Spec:
    return _spec(user, org_slug, spec_slug, Right.SEE)


def spec_to_manage(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Change source, variables and settings."""
    return require_unarchived(_spec(user, org_slug, spec_slug, Right.MANAGE_SPECS))


def spec_to_plan(user: Any, org_slug: str, spec_slug: str) -> Spec:
    return require_unarchived(_spec(user, org_slug, spec_slug, Right.PLAN))


def spec_to_apply(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Change infrastructure without a plan: destroy it."""
    return require_unarchived(_spec(user, org_slug, spec_slug, Right.APPLY))


def spec_to_read_secrets(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Reveal a sensitive output."""
    return require_unarchived(_spec(user, org_slug, spec_slug, Right.READ_SECRETS))


def spec_to_delete(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Archive a Spec, or restore it: only this door leads to an archived one."""
    return _spec(user, org_slug, spec_slug, Right.DELETE_SPECS)


def require_unarchived(spec: Spec) -> Spec:
    if spec.archived_at is not None:
        raise SpecArchived(f"{spec.name} was archived. An admin can restore it on its page.")
    return spec


def spec_to_view_by_id(user: Any, spec_id: UUID) -> Spec:
    """Return a Spec by its id, for the API; another organization's is not found."""
    return _spec_by_id(user, spec_id, Right.SEE)


def spec_to_manage_by_id(user: Any, spec_id: UUID) -> Spec:
    return require_unarchived(_spec_by_id(user, spec_id, Right.MANAGE_SPECS))


def spec_to_plan_by_id(user: Any, spec_id: UUID) -> Spec:
    return require_unarchived(_spec_by_id(user, spec_id, Right.PLAN))


def spec_to_apply_by_id(user: Any, spec_id: UUID) -> Spec:
    return require_unarchived(_spec_by_id(user, spec_id, Right.APPLY))


def spec_to_read_secrets_by_id(user: Any, spec_id: UUID) -> Spec:
    return require_unarchived(_spec_by_id(user, spec_id, Right.READ_SECRETS))


def spec_to_change(user: Any, org_slug: str, spec_slug: str, settings: Mapping[str, Any]) -> Spec:
    """Change these settings. Those that protect a protected Spec need the right to."""
    spec = spec_to_manage(user, org_slug, spec_slug)
    if _loosens(spec, settings):
        require_right(user, org_slug, Right.PROTECT_SPECS)
    return spec


def spec_to_change_by_id(user: Any, spec_id: UUID, settings: Mapping[str, Any]) -> Spec:
    spec = spec_to_manage_by_id(user, spec_id)
    if _loosens(spec, settings):
        require_right(user, spec.organization.slug, Right.PROTECT_SPECS)
    return spec


def _loosens(spec: Spec, settings: Mapping[str, Any]) -> bool:
    return spec.protected and any(settings[name] != getattr(spec, name) for name in GUARDED & settings.keys())


def _spec(user: Any, org_slug: str, slug: str, right: Right) -> Spec:
    organization = require_right(user, org_slug, right)
    spec = (
        Spec.objects.select_related("organization", "pool")
        .filter(organization=organization, slug=slug)
        .first()
    )
    if spec is None:
        raise NotFound
    return spec


def _spec_by_id(user: Any, spec_id: UUID, right: Right) -> Spec:
    spec = Spec.objects.select_related("organization", "pool").filter(pk=spec_id).first()
    if spec is None:
        raise NotFound
    require_right(user, spec.organization.slug, right)
    return spec
