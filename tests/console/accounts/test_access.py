"""Roles: each may do what the ones before it may, in their own organization only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError

from console.accounts import access
from console.accounts.models import Installation, Membership, Organization, Role
from console.accounts.services import reset_password, set_installation_drain
from console.errors import Forbidden, NotFound, NotSignedIn
from tests.people import Tenant

DOORS = {
    "viewer": access.organization_to_view,
    "operator": access.organization_to_operate,
    "admin": access.organization_to_administer,
}
ORDER = list(DOORS)


@pytest.mark.parametrize("role", ORDER)
@pytest.mark.parametrize("door", ORDER)
def test_a_door_opens_for_its_role_and_higher_ones(ours: Tenant, role: str, door: str) -> None:
    person = getattr(ours, role)
    if ORDER.index(role) >= ORDER.index(door):
        assert DOORS[door](person, "ours") == ours.organization
    else:
        with pytest.raises(Forbidden, match=f"needs the {door} role in Ours; yours is {role}"):
            DOORS[door](person, "ours")


@pytest.mark.parametrize("door", ORDER)
def test_a_strangers_organization_is_not_there(ours: Tenant, theirs: Tenant, door: str) -> None:
    for slug in ("ours", "nowhere"):
        with pytest.raises(NotFound) as refused:
            DOORS[door](theirs.admin, slug)
        assert str(refused.value) == "There is nothing here, or you do not have access to it."


@pytest.mark.parametrize("nobody", [None, AnonymousUser(), SimpleNamespace(is_active=True)])
def test_nobody_enters_without_signing_in(ours: Tenant, nobody: Any) -> None:
    with pytest.raises(NotSignedIn):
        access.organization_to_view(nobody, "ours")


def test_an_inactive_person_does_not_enter(ours: Tenant) -> None:
    ours.admin.is_active = False
    with pytest.raises(NotSignedIn):
        access.organization_to_view(ours.admin, "ours")


def test_a_person_has_one_role_in_an_organization(ours: Tenant) -> None:
    with pytest.raises(IntegrityError, match="membership_once_per_organization"):
        Membership.objects.create(user=ours.admin, organization=ours.organization, role=Role.VIEWER)


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
