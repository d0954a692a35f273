"""The only doors to a cloud identity. Another organization's is not there."""

from typing import Any
from uuid import UUID

from console.accounts.access import organization_to_administer, organization_to_operate, organization_to_view
from console.accounts.models import Organization, Role
from console.errors import NotFound
from console.identities.models import CloudIdentity

DOORS = {
    Role.VIEWER: organization_to_view,
    Role.OPERATOR: organization_to_operate,
    Role.ADMIN: organization_to_administer,
}


def identity_to_view(user: Any, org_slug: str, slug: str) -> CloudIdentity:
    return _identity(organization_to_view(user, org_slug), slug)


def identity_to_test(user: Any, org_slug: str, slug: str) -> CloudIdentity:
    """Testing and refreshing change nothing in the cloud: an operator may."""
    return _identity(organization_to_operate(user, org_slug), slug)


def identity_to_administer(user: Any, org_slug: str, slug: str) -> CloudIdentity:
    """Changing an identity is an admin's right: it decides who may act in which account."""
    return _identity(organization_to_administer(user, org_slug), slug)


def identity_by_id(user: Any, identity_id: UUID, role: Role = Role.VIEWER) -> CloudIdentity:
    """For the API, which knows identities by their id."""
    identity = CloudIdentity.objects.select_related("organization").filter(pk=identity_id).first()
    if identity is None:
        raise NotFound
    DOORS[role](user, identity.organization.slug)
    return identity


def identity_of(organization: Organization, name: Any) -> CloudIdentity:
    """The organization's identity of that id or slug. The caller has passed a door of the organization."""
    identities = CloudIdentity.objects.filter(organization=organization)
    try:
        identity = identities.filter(pk=UUID(str(name))).first()
    except ValueError:
        identity = identities.filter(slug=str(name)[:60]).first() if str(name).isprintable() else None
    if identity is None:
        raise NotFound(
            f"{organization.name} has no such cloud identity. Choose one of its own.", field="identity"
        )
    return identity


def _identity(organization: Organization, slug: str) -> CloudIdentity:
    identity = (
        CloudIdentity.objects.select_related("organization")
        .filter(organization=organization, slug=slug)
        .first()
    )
    if identity is None:
        raise NotFound
    return identity
