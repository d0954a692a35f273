"""A role is one line of one table: an approver may approve, and every page and door follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from console.accounts.models import Membership, User
from console.accounts.rights import ROLES, VIEWING, Right
from tests.console.pages.sample_organization import Sample, actions_of, pages_of
from tests.console.plans.review import Person, protect, refusal_in
from tests.specs.editing import Browser

pytestmark = pytest.mark.usefixtures("db")

#: Addresses that the right to approve opens beside a viewer's.
APPROVING = {"plan-approve", "plan-withdraw"}
TEMPLATES = Path(__file__).parents[3] / "templates"


@pytest.fixture
def approver(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> Iterator[User]:
    """A member with a role that the table has from here on; nothing else knows of it."""
    monkeypatch.setitem(ROLES, "approver", VIEWING | {Right.APPROVE})
    with transaction.atomic():
        with connection.cursor() as cursor:
            # The migration that `make lint` asks for would replace this CHECK.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("ALTER TABLE accounts_membership DROP CONSTRAINT membership_role_known")
        Membership.objects.filter(user=sample.tenant.viewer).update(role="approver")
        protect(sample.spec)
        yield sample.tenant.viewer
        transaction.set_rollback(True)


def client_of(person: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return client


def answer_to(client: Client, path: str, data: dict[str, Any] | None) -> Any:
    """The answer, and nothing of what it did."""
    with transaction.atomic():
        answer = client.get(path) if data is None else client.post(path, data)
        transaction.set_rollback(True)
    return answer


def test_an_approver_opens_and_sends_what_a_viewer_may_and_approves(sample: Sample, approver: User) -> None:
    for page in [*pages_of(sample), *actions_of(sample)]:
        allowed = page.role in ("viewer", "person", "anyone", "own") or page.name in APPROVING
        status = answer_to(client_of(approver), page.path, page.data).status_code
        assert (status != 403) == allowed, (page, status)


def test_an_approver_is_offered_exactly_what_they_may_send(sample: Sample, approver: User) -> None:
    client = client_of(approver)
    refused = [
        page.path
        for page in actions_of(sample)
        if page.role in ("operator", "admin", "staff") and page.name not in APPROVING
    ]
    # Some forms are sent to the address of a page that everybody reads.
    readable = {page.path for page in pages_of(sample) if page.role in ("viewer", "person")}
    for page in pages_of(sample):
        answer = answer_to(client, page.path, None)
        text = "" if answer.streaming else answer.content.decode()
        offers = [path for path in refused if f'action="{path}"' in text]
        links = [path for path in refused if path not in readable and f'href="{path}"' in text]
        assert (offers, links) == ([], []), page
    plan = f"/ours/specs/{sample.spec.slug}/plans/{sample.plan.number}/"
    assert f'action="{plan}approve"' in answer_to(client, plan, None).content.decode()


def test_an_approval_by_an_approver_lets_the_requester_apply(sample: Sample, approver: User) -> None:
    person, requester = Person(approver), Person(sample.tenant.operator)
    assert f"Can approve: ours-admin, ours-second-operator, {approver}." in requester.sees(sample.plan)
    for page in ("", f"specs/{sample.spec.slug}/"):
        assert "Review and approve" in Browser(sample.tenant, approver).reads(page)
    assert "needs the operator role in Ours; yours is approver" in refusal_in(person.applies(sample.plan))
    assert person.approves(sample.plan).status_code == 200
    page = person.sees(sample.plan)
    assert "1 of 1" in page
    assert "Withdraw" in page
    assert "/apply" not in page
    assert "/apply" in requester.sees(sample.plan)
    assert "Review and" not in Browser(sample.tenant, approver).reads("")
    assert "Review and apply" in Browser(sample.tenant, sample.tenant.operator).reads("")


def test_the_api_asks_the_same_rights(sample: Sample, approver: User) -> None:
    api = Client(headers={"Authorization": f"Bearer {sample.tenant.token_of(approver)}"})
    plan, spec = f"/api/plans/{sample.plan.pk}", f"/api/specs/{sample.spec.pk}"
    assert api.post(f"{plan}/approvals").status_code == 201
    assert api.delete(f"{plan}/approvals").status_code == 200
    job: dict[str, Any] = {"spec": str(sample.spec.pk), "confirmation": sample.spec.name}
    for answer in (
        api.post(f"{plan}/deploy"),
        api.post("/api/jobs", {**job, "type": "PLAN"}, content_type="application/json"),
        api.post("/api/jobs", {**job, "type": "DESTROY"}, content_type="application/json"),
        api.post(f"/api/jobs/{sample.queued.pk}/cancel"),
        api.post(f"/api/jobs/{sample.failed.pk}/retry"),
        api.patch(spec, {"description": "another"}, content_type="application/json"),
        api.post(f"{spec}/outputs/address/reveal"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), answer.json()


def test_an_admin_gives_the_role_like_any_other(sample: Sample, approver: User) -> None:
    admin, other = client_of(sample.tenant.admin), sample.tenant.second_operator
    assert '<option value="approver">Approver</option>' in answer_to(
        admin, "/ours/settings/members/", None
    ).content.decode().replace(" selected", "")
    path = f"/ours/settings/members/{sample.membership.pk}/role"
    assert admin.post(path, {"role": "approver"}).status_code == 302
    assert Membership.objects.get(user=other).role == "approver"


def test_templates_ask_only_for_rights_that_exist() -> None:
    texts = [path.read_text() for path in TEMPLATES.rglob("*.html")]
    names = {name for text in texts for name in re.findall(r"\bmay\.(\w+)", text)}
    assert names
    assert names <= set(Right)
