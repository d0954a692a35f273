"""The only doors to an organization: who may see it, who may act in it."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from console.accounts.models import ApiToken, Invitation, Membership, Organization, User
from console.accounts.rights import Right, roles_with
from console.errors import Forbidden, NotFound, NotSignedIn


def memberships_of(user: Any) -> QuerySet[Membership]:
    """The memberships that a signed-in user may use: with a token, the one of its organization only."""
    if not isinstance(user, User) or not user.is_active or user.usable_memberships is None:
        raise NotSignedIn
    return Membership.objects.filter(user.usable_memberships, user=user)


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
    return _require(_membership(user, slug), right)


def require_requester_right(requester: User, organization: Organization, right: Right) -> None:
    """Refuse what Slipway would do for a person who no longer has the right to do it themselves."""
    memberships = Membership.objects.filter(user=requester, user__is_active=True, organization=organization)
    membership = memberships.select_related("organization").first()
    if membership is None:
        raise Forbidden(f"{requester} is no longer a member of {organization.name}.")
    _require(membership, right)


def require_staff(user: Any, slug: str) -> None:
    """Refuse people who do not run the installation itself."""
    _membership(user, slug)
    if not user.is_staff:
        raise Forbidden(
            "This concerns every organization here: only staff of the installation may do it, "
            "or `manage.py drain` on its command line."
        )


def membership_to_manage(user: Any, slug: str, membership_id: UUID) -> Membership:
    organization = organization_to_manage_people(user, slug)
    memberships = organization.memberships.select_related("user", "organization")
    membership = memberships.filter(pk=membership_id).first()
    if membership is None:
        raise NotFound
    return membership


def membership_to_end(user: Any, slug: str, membership_id: UUID) -> Membership:
    """Leave, or remove another member with the right to manage people."""
    own = _membership(user, slug)
    return own if own.pk == membership_id else membership_to_manage(user, slug, membership_id)


def invitation_to_manage(user: Any, slug: str, invitation_id: UUID) -> Invitation:
    organization = organization_to_manage_people(user, slug)
    invitations = organization.invitations.select_related("organization")
    invitation = invitations.filter(pk=invitation_id).first()
    if invitation is None:
        raise NotFound
    return invitation


def token_to_revoke(user: Any, slug: str, token_id: UUID) -> ApiToken:
    """One's own token, or anybody's with the right to manage people."""
    membership = _membership(user, slug)
    tokens = ApiToken.objects.select_related("organization").filter(organization=membership.organization)
    if not membership.may(Right.MANAGE_PEOPLE):
        tokens = tokens.filter(user=user)
    token = tokens.filter(pk=token_id).first()
    if token is None:
        raise NotFound
    return token


def _require(membership: Membership, right: Right) -> Organization:
    if not membership.may(right):
        raise Forbidden(
            f"This needs the {roles_with(right)[0]} role in {membership.organization.name}; "
            f"yours is {membership.role}. Ask an admin of the organization."
        )
    return membership.organization


def _membership(user: Any, slug: str) -> Membership:
    membership = memberships_of(user).select_related("organization").filter(organization__slug=slug).first()
    if membership is None:
        raise NotFound
    return membership
