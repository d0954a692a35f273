"""Every page and every form, asked by everybody: a viewer, an operator, an admin, a stranger, and nobody."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, get_resolver

from console.accounts.models import User
from tests.console.pages.sample_organization import Page, Sample, actions_of, pages_of

pytestmark = pytest.mark.usefixtures("db")

ORDER = ["viewer", "operator", "admin"]

#: Addresses that no role decides about, and where they are tried instead.
ELSEWHERE = {
    "home": "a redirect",
    "spec-resources": "a redirect, to the newest state",
    "sign-in": "tests/journeys",
    "sign-out": "tests/journeys",
    "join": "test_members.py",
    "jobs-filter-remove": "a person's own: test_lists.py",
    "job-errored-state": "tests/console/jobs/test_errored_states.py",
    "blueprint-refresh": "asks a Git host: tests/specs/test_own_blueprints.py",
    "identity-options": "a fragment of the form of a new Spec",
}

#: What a form that was let in answers: done, or refused for a reason of its own. Never "not yours".
LET_IN = {200, 204, 302, 400, 409, 413, 422, 423}


def client_of(person: User | None) -> Client:
    client = Client(raise_request_exception=False)
    if person is not None:
        client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return client


def asked(client: Client, page: Page) -> Any:
    """The answer, and nothing of what it did: each asker finds the same organization."""
    with transaction.atomic():
        answer = client.post(page.path, page.data) if page.is_action else client.get(page.path)
        transaction.set_rollback(True)
    return answer


def may(role: str, page: Page) -> bool:
    return page.role in ("person", "own", "anyone") or (page.role in ORDER and at_least(role, page.role))


def at_least(role: str, needed: str) -> bool:
    return ORDER.index(role) >= ORDER.index(needed)


def test_each_role_opens_exactly_the_pages_it_may_and_is_offered_what_it_may(
    sample: Sample,
) -> None:
    actions = {page.path: page.role for page in actions_of(sample)}
    for role in ORDER:
        client = client_of(getattr(sample.tenant, role))
        refused = [path for path, needed in actions.items() if needed in ORDER and not at_least(role, needed)]
        for page in pages_of(sample):
            answer = asked(client, page)
            assert answer.status_code == (200 if may(role, page) else 403), (role, page, answer.content)
            shown = b"" if answer.streaming else answer.content
            offered = [path for path in refused if f'action="{path}"'.encode() in shown]
            assert offered == [], (role, page)


def test_each_role_sends_exactly_the_forms_it_may(sample: Sample) -> None:
    for role in ORDER:
        for page in actions_of(sample):
            status = asked(client_of(getattr(sample.tenant, role)), page).status_code
            if page.role == "own" and role == "operator":
                assert status == 404, "somebody else's is not there"
            else:
                assert (status in LET_IN) if may(role, page) else (status == 403), (role, page, status)


def test_a_stranger_finds_nothing_and_changes_nothing(sample: Sample, stranger: User) -> None:
    client = client_of(stranger)
    for page in [*pages_of(sample), *actions_of(sample)]:
        if page.role in ("person", "anyone"):
            continue
        assert asked(client, page).status_code == 404, page


def test_nobody_is_asked_to_sign_in(sample: Sample) -> None:
    client = client_of(None)
    for page in [*pages_of(sample), *actions_of(sample)]:
        answer = asked(client, page)
        if page.role != "anyone":
            assert answer.status_code == 302, page
            assert answer["Location"].startswith("/sign-in?next="), page


def test_staff_of_the_installation_may_drain_it(sample: Sample) -> None:
    drain = next(page for page in actions_of(sample) if page.role == "staff")
    with transaction.atomic():
        User.objects.filter(pk=sample.tenant.viewer.pk).update(is_staff=True)
        assert asked(client_of(sample.tenant.viewer), drain).status_code == 302
        transaction.set_rollback(True)


def test_no_address_is_forgotten(sample: Sample) -> None:
    tried = {page.name for page in [*pages_of(sample), *actions_of(sample)]}
    patterns = get_resolver("console.pages.urls").url_patterns
    names = {str(pattern.name) for pattern in patterns if isinstance(pattern, URLPattern)}
    assert names - tried == set(ELSEWHERE)
