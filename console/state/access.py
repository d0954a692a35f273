"""The only doors to a Spec's state. A whole state holds secrets in clear: viewers see it masked only."""

from typing import Any
from uuid import UUID

from console.accounts.access import require_right
from console.accounts.models import Membership, Organization, User
from console.accounts.rights import Right
from console.errors import Forbidden, NotFound
from console.state.models import StateLock
from specs.access import require_unarchived, spec_to_view
from specs.models import Spec


def organization_to_manage_state(user: Any, slug: str) -> Organization:
    """Choose where the organization keeps its states."""
    return require_right(user, slug, Right.MANAGE_STATE)


def state_to_view(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Versions, resources and differences, with sensitive values masked."""
    return spec_to_view(user, org_slug, spec_slug)


def state_to_read_secrets(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Download a state with everything in it."""
    require_right(user, org_slug, Right.READ_SECRETS)
    return spec_to_view(user, org_slug, spec_slug)


def state_to_write(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Import a state."""
    require_right(user, org_slug, Right.WRITE_STATE)
    return require_unarchived(spec_to_view(user, org_slug, spec_slug))


def state_to_manage(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Roll back, and choose where state is kept."""
    require_right(user, org_slug, Right.MANAGE_STATE)
    return require_unarchived(spec_to_view(user, org_slug, spec_slug))


def state_to_unlock(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Release a lock: one's own with the right to write, another person's with the right to manage."""
    require_right(user, org_slug, Right.WRITE_STATE)
    spec = spec_to_view(user, org_slug, spec_slug)
    require_may_unlock(user, spec)
    return spec


def may_unlock(user: User, spec: Spec) -> bool:
    membership = Membership.objects.filter(user=user, organization=spec.organization_id).first()
    if membership is None:
        return False
    if membership.may(Right.MANAGE_STATE):
        return True
    return membership.may(Right.WRITE_STATE) and StateLock.objects.filter(spec=spec, user=user).exists()


def require_may_unlock(user: User, spec: Spec) -> None:
    if not may_unlock(user, spec):
        raise Forbidden(
            f"Only an admin of {spec.organization.name} may release another person's lock. Ask one of them."
        )


def state_to_view_by_id(user: Any, spec_id: UUID) -> Spec:
    """Return the Spec with this id, for the API."""
    return _spec_by_id(user, spec_id, Right.SEE)


def state_to_write_by_id(user: Any, spec_id: UUID) -> Spec:
    return require_unarchived(_spec_by_id(user, spec_id, Right.WRITE_STATE))


def state_to_use_by_id(user: Any, spec_id: UUID) -> Spec:
    """Let a person's own Terraform read the whole state and write it."""
    spec = state_to_write_by_id(user, spec_id)
    require_right(user, spec.organization.slug, Right.READ_SECRETS)
    return spec


def state_to_manage_by_id(user: Any, spec_id: UUID) -> Spec:
    return require_unarchived(_spec_by_id(user, spec_id, Right.MANAGE_STATE))


def _spec_by_id(user: Any, spec_id: UUID, right: Right) -> Spec:
    spec = Spec.objects.select_related("organization").filter(pk=spec_id).first()
    if spec is None:
        raise NotFound
    require_right(user, spec.organization.slug, right)
    return spec
