"""The only doors to a spec's state. A whole state holds secrets in clear: viewers see it masked only."""

from typing import Any
from uuid import UUID

from console.accounts.access import organization_to_administer, organization_to_operate, organization_to_view
from console.accounts.models import Membership, Role, User
from console.errors import Forbidden, NotFound
from console.state.models import StateLock
from specs.access import require_unarchived, spec_to_operate, spec_to_view
from specs.models import Spec


def state_to_view(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Versions, resources and differences, with sensitive values masked."""
    return spec_to_view(user, org_slug, spec_slug)


def state_to_read_whole(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Download a state with everything in it."""
    organization_to_operate(user, org_slug)
    return spec_to_view(user, org_slug, spec_slug)


def state_to_upload(user: Any, org_slug: str, spec_slug: str) -> Spec:
    return spec_to_operate(user, org_slug, spec_slug)


def state_to_administer(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Roll back, and choose where state is kept."""
    organization_to_administer(user, org_slug)
    return spec_to_operate(user, org_slug, spec_slug)


def state_to_unlock(user: Any, org_slug: str, spec_slug: str) -> Spec:
    """Take a lock away: one's own as an operator, anybody's as an admin."""
    spec = state_to_read_whole(user, org_slug, spec_slug)
    require_may_unlock(user, spec)
    return spec


def may_unlock(user: User, spec: Spec) -> bool:
    try:
        require_may_unlock(user, spec)
    except Forbidden:
        return False
    return True


def require_may_unlock(user: User, spec: Spec) -> None:
    membership = Membership.objects.get(user=user, organization=spec.organization_id)
    own = StateLock.objects.filter(spec=spec, user=user).exists()
    if not (membership.may_act_as(Role.ADMIN) or (own and membership.may_act_as(Role.OPERATOR))):
        raise Forbidden(
            f"Only an admin of {spec.organization.name} may take somebody else's lock away. Ask one of them."
        )


def state_by_id(user: Any, spec_id: UUID, role: Role = Role.VIEWER) -> Spec:
    """For the API and Terraform itself, which know specs by their id."""
    spec = Spec.objects.select_related("organization").filter(pk=spec_id).first()
    if spec is None:
        raise NotFound
    door = {
        Role.VIEWER: organization_to_view,
        Role.OPERATOR: organization_to_operate,
        Role.ADMIN: organization_to_administer,
    }[role]
    door(user, spec.organization.slug)
    return spec if role == Role.VIEWER else require_unarchived(spec)
