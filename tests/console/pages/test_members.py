"""Members, invitations, tokens, drain and a person's own account, as forms and answers."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from console.accounts.members import change_role, remove_member
from console.accounts.models import ApiToken, Installation, Invitation, Membership, Organization, User
from console.audit.models import AuditEvent
from console.errors import Conflict
from tests.concurrency.threads import outcomes
from tests.console_app import Console
from tests.page_source import source_of
from tests.people import Tenant
from tests.specs.editing import Browser

PASSWORD = "a long pass phrase"


def anybody() -> Client:
    return Client()


def link_in(shown: str) -> str:
    found = re.search(r'text="[^"]*(/join/[^"]+)"', shown)
    assert found, shown
    return found.group(1)


def invited(ours: Tenant, role: str = "operator") -> str:
    answer = Browser(ours, ours.admin).post("settings/members/", role=role, note="the new one")
    assert answer.status_code == 200
    return link_in(source_of(answer))


def membership(tenant: Tenant, person: User) -> Membership:
    return Membership.objects.get(user=person, organization=tenant.organization)


def test_an_invited_person_makes_an_account_and_joins_once(ours: Tenant) -> None:
    link = invited(ours)
    client = anybody()
    assert "invited you to join as operator" in source_of(client.get(link))
    joined = client.post(link, {"username": "newcomer", "password": PASSWORD})
    assert joined["Location"] == "/ours/"
    assert client.get("/ours/specs/").status_code == 200
    assert membership(ours, User.objects.get(username="newcomer")).role == "operator"
    assert anybody().get(link).status_code == 404, "a link works once"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"username": "newcomer", "password": "short"}, "too short"),
        ({"username": "ours-viewer", "password": PASSWORD}, "already exists"),
        ({"username": "bad name!", "password": PASSWORD}, "valid username"),
    ],
)
def test_a_bad_name_or_password_is_refused_and_the_link_stays_good(
    ours: Tenant, fields: dict[str, str], words: str
) -> None:
    link = invited(ours)
    refused = anybody().post(link, fields)
    assert refused.status_code == 400
    assert words in source_of(refused)
    assert anybody().get(link).status_code == 200


def test_somebody_with_an_account_joins_with_it(ours: Tenant, theirs: Tenant) -> None:
    client = anybody()
    client.force_login(theirs.viewer, backend="django.contrib.auth.backends.ModelBackend")
    link = invited(ours, "viewer")
    assert "Join as theirs-viewer" in source_of(client.get(link))
    assert client.post(link).status_code == 302
    assert membership(ours, theirs.viewer).role == "viewer"
    again = client.post(invited(ours))
    assert again.status_code == 409
    assert "belongs to Ours already" in source_of(again)


def test_an_invitation_that_is_withdrawn_or_old_is_not_there(ours: Tenant) -> None:
    withdrawn, old = invited(ours), invited(ours)
    first, second = Invitation.objects.order_by("pk")
    Browser(ours, ours.admin).post(f"settings/invitations/{first.pk}/withdraw")
    Invitation.objects.filter(pk=second.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    for link in (withdrawn, old):
        assert anybody().post(link, {"username": "late", "password": PASSWORD}).status_code == 404
    assert not User.objects.filter(username="late").exists()


def test_the_link_is_shown_once_and_kept_as_a_hash(ours: Tenant) -> None:
    link = invited(ours)
    token = link.removeprefix("/join/")
    assert token not in Browser(ours, ours.admin).reads("settings/members/")
    assert not Invitation.objects.filter(token_sha256__contains=token).exists()


def test_the_last_admin_stays_whatever_is_asked(ours: Tenant) -> None:
    admin = membership(ours, ours.admin)
    browser = Browser(ours, ours.admin)
    for path, fields in ((f"{admin.pk}/role", {"role": "viewer"}), (f"{admin.pk}/remove", {})):
        refused = browser.post(f"settings/members/{path}", fields)
        assert refused.status_code == 409
        assert "the only admin of Ours" in source_of(refused)
    assert membership(ours, ours.admin).role == "admin"


def test_two_admins_who_remove_each_other_at_once_leave_one(ours: Tenant) -> None:
    second = membership(ours, ours.operator)
    change_role(membership=second, role="admin", changed_by=ours.admin)
    first = membership(ours, ours.admin)

    removals = [partial(remove_member, membership=one, removed_by=ours.admin) for one in (first, second)]
    assert sorted(outcomes(removals, Conflict)) == [False, True]
    assert Membership.objects.filter(organization=ours.organization, role="admin").count() == 1


def test_who_is_removed_loses_their_tokens_and_their_pages(ours: Tenant, console: Console) -> None:
    api, browser = console.person(ours, "operator"), Browser(ours, ours.operator)
    assert api.get("/api/specs?organization=ours").status_code == 200
    gone = membership(ours, ours.operator)
    Browser(ours, ours.admin).post(f"settings/members/{gone.pk}/remove")
    assert api.get("/api/specs?organization=ours").status_code == 401
    assert browser.get("specs/").status_code == 404
    event = AuditEvent.objects.get(action="member.removed")
    assert event.data == {"name": "ours-operator", "role": "operator", "tokens_revoked": 1}


def test_anybody_may_leave(ours: Tenant) -> None:
    own = membership(ours, ours.viewer)
    assert Browser(ours, ours.viewer).post(f"settings/members/{own.pk}/remove").status_code == 200
    assert not Membership.objects.filter(pk=own.pk).exists()


def test_a_token_is_shown_once_works_and_is_revoked(ours: Tenant, console: Console) -> None:
    browser = Browser(ours, ours.viewer)
    made = source_of(browser.post("settings/tokens/", name="laptop", days="30"))
    text = re.findall(r"slu_[A-Za-z0-9_-]+", made)[0]
    assert text not in browser.reads("settings/tokens/")
    api = console.with_authorization(f"Bearer {text}")
    assert api.get("/api/specs?organization=ours").status_code == 200
    token = ApiToken.objects.get(name="laptop")
    assert token.expires_at is not None
    browser.post(f"settings/tokens/{token.pk}/revoke")
    assert api.get("/api/specs?organization=ours").status_code == 401
    assert "No tokens yet" in browser.reads("settings/tokens/")


@pytest.mark.parametrize("fields", [{"name": ""}, {"name": "x" * 101}, {"name": "x", "days": "9999"}])
def test_a_token_needs_a_name_and_a_lifetime_of_the_list(ours: Tenant, fields: dict[str, str]) -> None:
    assert Browser(ours, ours.viewer).post("settings/tokens/", fields).status_code == 400
    assert not ApiToken.objects.filter(user=ours.viewer).exists()


def test_an_admin_sees_and_revokes_everybodys_tokens(ours: Tenant) -> None:
    ours.token_of(ours.operator)
    token = ApiToken.objects.get(user=ours.operator)
    assert "All tokens" in Browser(ours, ours.admin).reads("settings/tokens/")
    assert "All tokens" not in Browser(ours, ours.viewer).reads("settings/tokens/")
    Browser(ours, ours.admin).post(f"settings/tokens/{token.pk}/revoke")
    assert ApiToken.objects.get(pk=token.pk).revoked_at is not None


def test_draining_is_switched_on_its_page_and_shown_on_the_dashboard(ours: Tenant) -> None:
    admin = Browser(ours, ours.admin)
    admin.post("settings/drain", draining="1")
    assert "Resume" in admin.reads("settings/")
    assert "has been draining since" in Browser(ours, ours.viewer).reads("")
    refused = Browser(ours, ours.operator).post(f"specs/{ours.spec.slug}/plan")
    assert refused.status_code == 503
    admin.post("settings/drain", draining="0")
    assert Organization.objects.get(slug="ours").draining_since is None


def test_staff_drain_the_installation(ours: Tenant) -> None:
    User.objects.filter(pk=ours.admin.pk).update(is_staff=True)
    browser = Browser(ours, User.objects.get(pk=ours.admin.pk))
    assert "Installation" in browser.reads("settings/")
    browser.post("settings/drain/installation", draining="1")
    assert Installation.objects.get().draining_since is not None


def with_password(person: User) -> User:
    person.set_password(PASSWORD)
    person.save(update_fields=["password"])
    return person


def session_of(person: User) -> Client:
    client = Client()
    answer = client.post("/sign-in", {"username": person.username, "password": PASSWORD})
    assert answer.status_code == 302, answer.content
    return client


def posted(client: Client, path: str, **fields: Any) -> Any:
    return client.post(path, fields)


def test_a_new_password_ends_every_other_session(ours: Tenant) -> None:
    person = with_password(ours.viewer)
    here, elsewhere = session_of(person), session_of(person)
    new = "quite another pass phrase"
    wrong = posted(here, "/account/password", current="wrong", new=new, again=new)
    assert (wrong.status_code, "not your current password" in source_of(wrong)) == (400, True)
    assert posted(here, "/account/password", current=PASSWORD, new=new, again="typo").status_code == 400
    assert posted(here, "/account/password", current=PASSWORD, new="short", again="short").status_code == 400
    assert posted(here, "/account/password", current=PASSWORD, new=new, again=new).status_code == 302
    assert here.get("/account/").status_code == 200
    assert elsewhere.get("/account/").status_code == 302
    assert User.objects.get(pk=ours.viewer.pk).check_password(new)


def test_signing_out_everywhere_ends_all_sessions(ours: Tenant) -> None:
    person = with_password(ours.viewer)
    here, elsewhere = session_of(person), session_of(person)
    assert posted(here, "/account/sign-out-everywhere")["Location"] == "/sign-in"
    for client in (here, elsewhere):
        assert client.get("/account/").status_code == 302
    assert session_of(person).get("/account/").status_code == 200


def test_the_colours_are_chosen_without_scripts_too(ours: Tenant) -> None:
    client = anybody()
    client.force_login(ours.viewer, backend="django.contrib.auth.backends.ModelBackend")
    chosen = posted(client, "/account/theme", theme="dark", next="https://elsewhere.example/")
    assert chosen["Location"] == "/account/", "no way out of here"
    assert 'data-theme="dark"' in source_of(client.get("/account/"))
    posted(client, "/account/theme", theme="")
    assert "data-theme" not in source_of(client.get("/account/")).split("<head>")[0]
