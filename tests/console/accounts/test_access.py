"""Roles and rights: a door opens for the roles that have its right, in their own organization only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError

from console.accounts import access
from console.accounts.authentication import sign_in_with_session, sign_in_with_token
from console.accounts.models import ApiToken, Installation, Membership, Organization, User
from console.accounts.rights import ROLES, Right, roles_with
from console.accounts.services import create_api_token, reset_password, set_installation_drain
from console.errors import Forbidden, NotFound, NotSignedIn
from tests.people import Tenant


def signed_in(person: User) -> Any:
    """The person, with a session."""
    return sign_in_with_session(person)


@pytest.mark.parametrize("role", ROLES)
def test_a_door_opens_for_the_roles_that_have_its_right(ours: Tenant, role: str) -> None:
    person = signed_in(getattr(ours, role))
    for right in Right:
        if right in ROLES[role]:
            assert access.require_right(person, "ours", right) == ours.organization
        else:
            least = roles_with(right)[0]
            with pytest.raises(Forbidden, match=f"needs the {least} role in Ours; yours is {role}"):
                access.require_right(person, "ours", right)


def test_each_role_has_the_rights_of_the_one_before_and_an_admin_has_all() -> None:
    viewer, operator, admin = ROLES.values()
    assert viewer < operator < admin == set(Right)


@pytest.mark.parametrize("right", Right)
def test_a_strangers_organization_is_not_there(ours: Tenant, theirs: Tenant, right: Right) -> None:
    for slug in ("ours", "nowhere"):
        with pytest.raises(NotFound) as refused:
            access.require_right(signed_in(theirs.admin), slug, right)
        assert str(refused.value) == "There is nothing here, or you do not have access to it."


@pytest.mark.parametrize("nobody", [None, AnonymousUser(), SimpleNamespace(is_active=True)])
def test_nobody_enters_without_signing_in(ours: Tenant, nobody: Any) -> None:
    with pytest.raises(NotSignedIn):
        access.organization_to_view(nobody, "ours")


def test_an_inactive_person_does_not_enter(ours: Tenant) -> None:
    ours.admin.is_active = False
    with pytest.raises(NotSignedIn):
        access.organization_to_view(signed_in(ours.admin), "ours")


def test_a_user_whom_nobody_signed_in_passes_no_door(ours: Tenant) -> None:
    for right in Right:
        with pytest.raises(NotSignedIn):
            access.require_right(ours.admin, "ours", right)
    with pytest.raises(NotSignedIn):
        access.memberships_of(ours.admin)


def test_a_token_opens_its_own_organization_only(ours: Tenant, theirs: Tenant) -> None:
    Membership.objects.create(user=ours.admin, organization=theirs.organization, role="admin")
    token, _ = create_api_token(user=ours.admin, organization=ours.organization, name="ci")
    assert access.require_right(signed_in(ours.admin), "theirs", Right.SEE) == theirs.organization
    owner = sign_in_with_token(ApiToken.objects.get(pk=token.pk))
    assert access.require_right(owner, "ours", Right.SEE) == ours.organization
    with pytest.raises(NotFound):
        access.require_right(owner, "theirs", Right.SEE)
    assert [membership.organization for membership in access.memberships_of(owner)] == [ours.organization]


def test_a_person_has_one_role_in_an_organization(ours: Tenant) -> None:
    with pytest.raises(IntegrityError, match="membership_once_per_organization"):
        Membership.objects.create(user=ours.admin, organization=ours.organization, role="viewer")


def test_a_slug_names_one_organization(ours: Tenant) -> None:
    with pytest.raises(IntegrityError):
        Organization.objects.create(name="Another", slug="ours")


def test_the_installation_is_one_row(transactional_db: None) -> None:
    set_installation_drain(draining=True)
    set_installation_drain(draining=False)
    assert Installation.objects.get().draining_since is None
    with pytest.raises(IntegrityError, match="installation_is_one_row"):
        Installation.objects.create(pk=2)


def test_a_new_password_is_long_and_replaces_the_old(ours: Tenant) -> None:
    first, second = reset_password(user=ours.admin), reset_password(user=ours.admin)
    assert len(first) >= 20
    assert ours.admin.check_password(second)
    assert not ours.admin.check_password(first)
