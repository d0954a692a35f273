"""The only doors to an organization: who may see it, who may act in it."""

from typing import Any
from uuid import UUID

from console.accounts.models import ApiToken, Invitation, Membership, Organization, User
from console.accounts.rights import Right, roles_with
from console.errors import Forbidden, NotFound, NotSignedIn


def membership_of(user: Any, organization: Organization) -> Membership:
    return _membership(user, organization.slug)


def organization_to_view(user: Any, slug: str) -> Organization:
    return require_right(user, slug, Right.SEE)


def organization_to_manage_people(user: Any, slug: str) -> Organization:
    return require_right(user, slug, Right.MANAGE_PEOPLE)


def organization_to_manage_settings(user: Any, slug: str) -> Organization:
    return require_right(user, slug, Right.MANAGE_SETTINGS)


def organization_to_audit(user: Any, slug: str) -> Organization:
    return require_right(user, slug, Right.READ_AUDIT)


def require_right(user: Any, slug: str, right: Right) -> Organization:
    """Return the organization, or refuse with the role that would be needed. Every other door asks this."""
    membership = _membership(user, slug)
    if not membership.may(right):
        raise Forbidden(
            f"This needs the {roles_with(right)[0]} role in {membership.organization.name}; "
            f"yours is {membership.role}. Ask an admin of the organization."
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


def membership_to_manage(user: Any, slug: str, membership_id: UUID) -> Membership:
    organization = organization_to_manage_people(user, slug)
    return _found(
        organization.memberships.select_related("user", "organization").filter(pk=membership_id).first()
    )


def membership_to_end(user: Any, slug: str, membership_id: UUID) -> Membership:
    """Anybody may leave; only an admin takes others out."""
    own = _membership(user, slug)
    return own if own.pk == membership_id else membership_to_manage(user, slug, membership_id)


def invitation_to_manage(user: Any, slug: str, invitation_id: UUID) -> Invitation:
    organization = organization_to_manage_people(user, slug)
    found = organization.invitations.select_related("organization").filter(pk=invitation_id).first()
    if found is None:
        raise NotFound
    return found


def token_to_revoke(user: Any, slug: str, token_id: UUID) -> ApiToken:
    """One's own; anybody's as an admin."""
    membership = _membership(user, slug)
    tokens = ApiToken.objects.select_related("organization").filter(organization=membership.organization)
    if not membership.may(Right.MANAGE_PEOPLE):
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
