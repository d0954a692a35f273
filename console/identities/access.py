"""The only doors to a cloud identity. Another organization's is not there."""

from typing import Any
from uuid import UUID

from console.accounts.access import require_right
from console.accounts.models import Organization
from console.accounts.rights import Right
from console.errors import NotFound
from console.identities.models import CloudIdentity


def organization_to_manage_identities(user: Any, slug: str) -> Organization:
    return require_right(user, slug, Right.MANAGE_IDENTITIES)


def identity_to_view(user: Any, org_slug: str, slug: str) -> CloudIdentity:
    return _identity(user, org_slug, slug, Right.SEE)


def identity_to_test(user: Any, org_slug: str, slug: str) -> CloudIdentity:
    """Testing and refreshing change nothing in the cloud: an operator may."""
    return _identity(user, org_slug, slug, Right.TEST_IDENTITIES)


def identity_to_manage(user: Any, org_slug: str, slug: str) -> CloudIdentity:
    return _identity(user, org_slug, slug, Right.MANAGE_IDENTITIES)


def identity_to_view_by_id(user: Any, identity_id: UUID) -> CloudIdentity:
    """Return an identity by its id, for the API."""
    return _identity_by_id(user, identity_id, Right.SEE)


def identity_to_test_by_id(user: Any, identity_id: UUID) -> CloudIdentity:
    return _identity_by_id(user, identity_id, Right.TEST_IDENTITIES)


def identity_to_manage_by_id(user: Any, identity_id: UUID) -> CloudIdentity:
    return _identity_by_id(user, identity_id, Right.MANAGE_IDENTITIES)


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


def _identity(user: Any, org_slug: str, slug: str, right: Right) -> CloudIdentity:
    organization = require_right(user, org_slug, right)
    identities = CloudIdentity.objects.select_related("organization")
    identity = identities.filter(organization=organization, slug=slug).first()
    if identity is None:
        raise NotFound
    return identity


def _identity_by_id(user: Any, identity_id: UUID, right: Right) -> CloudIdentity:
    identity = CloudIdentity.objects.select_related("organization").filter(pk=identity_id).first()
    if identity is None:
        raise NotFound
    require_right(user, identity.organization.slug, right)
    return identity
