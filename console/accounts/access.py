"""The only doors to an organization: who may see it, who may act in it."""

from typing import Any
from uuid import UUID

from console.accounts.models import ApiToken, Invitation, Membership, Organization, Role, User
from console.errors import Forbidden, NotFound, NotSignedIn


def membership_of(user: Any, organization: Organization) -> Membership:
    return _membership(user, organization.slug)


def organization_to_view(user: Any, slug: str) -> Organization:
    return _membership(user, slug).organization


def organization_to_operate(user: Any, slug: str) -> Organization:
    return require_role(user, slug, Role.OPERATOR)


def organization_to_administer(user: Any, slug: str) -> Organization:
    return require_role(user, slug, Role.ADMIN)


def require_role(user: Any, slug: str, role: Role) -> Organization:
    membership = _membership(user, slug)
    if not membership.may_act_as(role):
        raise Forbidden(
            f"This needs the {role.label.lower()} role in {membership.organization.name}; "
            f"yours is {Role(membership.role).label.lower()}. Ask an admin of the organization."
        )
    return membership.organization


def require_staff(user: Any, slug: str) -> None:
    """For whoever runs the installation itself, signed in to an organization of theirs."""
    _membership(user, slug)
    if not user.is_staff:
        raise Forbidden(
            "This concerns every organization here: only staff of the installation may do it, "
            "or `manage.py drain` on its command line."
        )


def membership_to_administer(user: Any, slug: str, membership_id: UUID) -> Membership:
    organization = organization_to_administer(user, slug)
    return _found(
        organization.memberships.select_related("user", "organization").filter(pk=membership_id).first()
    )


def membership_to_end(user: Any, slug: str, membership_id: UUID) -> Membership:
    """Anybody may leave; only an admin takes others out."""
    own = _membership(user, slug)
    return own if own.pk == membership_id else membership_to_administer(user, slug, membership_id)


def invitation_to_administer(user: Any, slug: str, invitation_id: UUID) -> Invitation:
    organization = organization_to_administer(user, slug)
    found = organization.invitations.select_related("organization").filter(pk=invitation_id).first()
    if found is None:
        raise NotFound
    return found


def token_to_revoke(user: Any, slug: str, token_id: UUID) -> ApiToken:
    """One's own; anybody's as an admin."""
    membership = _membership(user, slug)
    tokens = ApiToken.objects.select_related("organization").filter(organization=membership.organization)
    if not membership.may_act_as(Role.ADMIN):
        tokens = tokens.filter(user=user)
    found = tokens.filter(pk=token_id).first()
    if found is None:
        raise NotFound
    return found


def _found(membership: Membership | None) -> Membership:
    if membership is None:
        raise NotFound
    return membership


def _membership(user: Any, slug: str) -> Membership:
    if not isinstance(user, User) or not user.is_active:
        raise NotSignedIn
    membership = (
        Membership.objects.select_related("organization").filter(user=user, organization__slug=slug).first()
    )
    # A token opens its own organization only, whatever else its owner may see.
    limit = getattr(user, "limited_to_organization_id", None)
    if membership is None or (limit is not None and membership.organization_id != limit):
        raise NotFound
    return membership
