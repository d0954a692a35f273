"""Identities through the API: made whole or refused by field, seen and changed by those who may."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from console.audit.models import AuditEvent
from console.identities.models import CloudIdentity
from tests.console.identities.identities_made import AWS, AZURE, GCP, SETTINGS, address, new_identity, use
from tests.console_app import Console, Http, code_of
from tests.people import Tenant


def post(api: Http, tenant: Tenant, **body: Any) -> httpx.Response:
    body = {"name": "Production", "provider": "aws", "settings": AWS, **body}
    return api.post(address(tenant), json=body)


@pytest.mark.parametrize("provider", ["aws", "gcp", "azure", "ambient"])
def test_an_identity_of_each_cloud_is_made_read_changed_and_deleted(
    console: Console, ours: Tenant, provider: str
) -> None:
    admin = console.person(ours, "admin")
    created = post(admin, ours, provider=provider, settings=SETTINGS[provider])
    assert created.status_code == 201, created.text
    path = created.headers["location"]
    assert admin.get(path).json() == created.json()
    assert [identity["id"] for identity in admin.get(address(ours)).json()["data"]] == [created.json()["id"]]
    answer = admin.request("PATCH", path, json={"name": "Live", "settings": {"regions": []}})
    assert (answer.status_code, answer.json()["name"]) == (200, "Live")
    assert answer.json()["slug"] == "production", "addresses stay"
    assert admin.delete(path).status_code == 204
    assert admin.get(path).status_code == 404
    actions = AuditEvent.objects.filter(target_id=created.json()["id"]).order_by("id")
    assert [event.action for event in actions] == [
        "identity.created", "identity.changed", "identity.deleted",
    ]  # fmt: skip


def test_what_is_not_said_is_filled_in(console: Console, ours: Tenant) -> None:
    identity = post(console.person(ours, "admin"), ours).json()
    assert identity["settings"] == {
        **AWS,
        "partition": "aws",
        "method": "web_identity",
        "session_seconds": 3600,
        "plan_policy_arns": [],
        "plan_policy": "",
        "regions": ["eu-central-1"],
    }
    assert identity["allowed"] == {"specs": ["*"], "environments": ["*"], "pools": ["*"]}
    assert (identity["account"], identity["audience"]) == ("123456789012", "sts.amazonaws.com")


def test_the_external_id_is_ours_and_unlike_any_other(console: Console, ours: Tenant, theirs: Tenant) -> None:
    ids = [new_identity(tenant, name=name).external_id for tenant in (ours, theirs) for name in ("a", "b")]
    assert len({*ids}) == 4
    assert all(id and id.startswith("slipway-") and len(id) >= 40 for id in ids)
    admin = console.person(ours, "admin")
    refused = post(admin, ours, settings={**AWS, "external_id": ids[2]})
    assert (refused.status_code, refused.json()["field"]) == (400, "settings.external_id")
    assert "Slipway makes it" in refused.json()["detail"]
    identity = CloudIdentity.objects.filter(organization=ours.organization).first()
    assert identity is not None
    answer = admin.request(
        "PATCH", f"/api/identities/{identity.pk}", json={"settings": {"external_id": "mine"}}
    )
    assert answer.status_code == 400
    assert new_identity(ours, "gcp", name="gcp").external_id is None


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("aws", {}, "role_arn", "is required"),
    ("aws", {**AWS, "role_arn": 7}, "role_arn", "is required"),
    ("aws", {**AWS, "role_arn": "arn:aws:iam::123:role/x"}, "role_arn", "is not the ARN of a role"),
    ("aws", {**AWS, "role_arn": "arn:aws:iam::123456789012:user/x"}, "role_arn", "the ARN of a role"),
    ("aws", {**AWS, "role_arn": "arn:aws:iam::１２３456789012:role/x"}, "role_arn", "the ARN of a role"),
    ("aws", {**AWS, "partition": "aws-cn"}, "partition", "the role is in aws"),
    ("aws", {**AWS, "region": "europe"}, "region", "is not a region such as eu-central-1"),
    ("aws", {**AWS, "region": "cn-north-1"}, "region", "is a region of aws-cn"),
    ("aws", {**AWS, "method": "keys"}, "method", "web_identity or assume_role"),
    ("aws", {**AWS, "session_seconds": 899}, "session_seconds", "from 900 to 43200"),
    ("aws", {**AWS, "session_seconds": True}, "session_seconds", "whole number"),
    (
        "aws",
        {**AWS, "method": "assume_role", "session_seconds": 7200},
        "session_seconds",
        "a role that a role assumes",
    ),
    ("aws", {**AWS, "plan_policy": "{"}, "plan_policy", "not JSON, look at line 1"),
    ("aws", {**AWS, "plan_policy": "[]"}, "plan_policy", "an IAM policy"),
    (
        "aws",
        {**AWS, "plan_policy": json.dumps({"Statement": ["x" * 3000]})},
        "plan_policy",
        "at most 2048 characters",
    ),
    (
        "aws",
        {**AWS, "plan_policy_arns": ["arn:aws:iam::aws:role/x"]},
        "plan_policy_arns",
        "ARN of a policy",
    ),
    ("aws", {**AWS, "plan_policy_arns": ["x"] * 11}, "plan_policy_arns", "at most 10"),
    ("aws", {**AWS, "regions": ["eu-west-1", "mars"]}, "regions", "'mars' is not a region"),
    ("aws", {**AWS, "regions": "eu-west-1"}, "regions", "expected a list"),
    ("aws", {**AWS, "access_key": "AKIA"}, "access_key", "is not a setting for aws"),
    ("gcp", {**GCP, "provider": "projects/harbour/x"}, "provider", "the provider's full name"),
    ("gcp", {**GCP, "service_account": "me@example.com"}, "service_account", "an address such as"),
    ("gcp", {**GCP, "project": "Harbour Prod"}, "project", "a project's id"),
    ("azure", {**AZURE, "tenant_id": "contoso"}, "tenant_id", "an id such as"),
    ("azure", {**AZURE, "client_id": "{0b1b6b0e8f6e4b5a9a0e0c5c1f1f2d3e}"}, "client_id", "an id such as"),
    ("ambient", {"provider_hint": "oracle"}, "provider_hint", "aws, gcp, azure"),
]


def test_a_setting_that_a_cloud_would_refuse_is_refused_by_its_field(console: Console, ours: Tenant) -> None:
    admin = console.person(ours, "admin")
    for provider, settings, field, words in REFUSED:
        answer = post(admin, ours, provider=provider, settings=settings)
        assert (answer.status_code, code_of(answer)) == (400, "bad_input"), answer.text
        assert answer.json()["field"] == f"settings.{field}", answer.text
        assert words in answer.json()["detail"], answer.text
    assert not CloudIdentity.objects.exists()
    assert not AuditEvent.objects.filter(action="identity.created").exists()


def test_what_makes_no_sense_leaves_nothing_behind(console: Console, ours: Tenant) -> None:
    admin = console.person(ours, "admin")
    bodies: list[dict[str, Any]] = [
        {"name": ""}, {"name": "   "}, {"name": "a\nb"}, {"name": "x" * 101}, {"name": "★"},
        {"name": "connect"}, {"provider": "oracle"}, {"settings": []}, {"settings": "role"},
        {"slug": "../up"},
        {"allowed": {"specs": ["nowhere"]}}, {"allowed": {"pools": ["nowhere"]}}, {"allowed": {"specs": "*"}},
        {"allowed": {"environments": ["a b"]}}, {"allowed": {"environments": [{}]}},
    ]  # fmt: skip
    for body in bodies:
        answer = post(admin, ours, **body)
        assert (answer.status_code, code_of(answer)) == (400, "bad_input"), body
    assert not CloudIdentity.objects.exists()


def test_a_name_is_taken_once_in_an_organization(console: Console, ours: Tenant, theirs: Tenant) -> None:
    new_identity(theirs)
    admin = console.person(ours, "admin")
    assert post(admin, ours).status_code == 201
    again = post(admin, ours)
    assert (again.status_code, again.json()["field"]) == (409, "name")


def test_a_change_is_whole_or_not_at_all_and_on_record(console: Console, ours: Tenant) -> None:
    identity, admin = new_identity(ours), console.person(ours, "admin")
    path = f"/api/identities/{identity.pk}"
    bad = {"name": "New", "settings": {"region": "eu-west-1"}, "allowed": {"pools": ["nowhere"]}}
    assert admin.request("PATCH", path, json=bad).status_code == 400
    assert CloudIdentity.objects.get().name == "Production"
    assert CloudIdentity.objects.get().settings["region"] == "eu-central-1"
    moved = {"role_arn": "arn:aws-cn:iam::123456789012:role/x", "region": "cn-north-1", "regions": []}
    assert admin.request("PATCH", path, json={"settings": moved}).status_code == 200
    assert CloudIdentity.objects.get().settings["partition"] == "aws-cn"
    event = AuditEvent.objects.get(action="identity.changed")
    assert event.data["changed"]["settings"]["region"] == "cn-north-1"
    assert event.data["before"]["settings"]["region"] == "eu-central-1"
    assert admin.request("PATCH", path, json={"settings": moved}).status_code == 200
    assert AuditEvent.objects.filter(action="identity.changed").count() == 1, (
        "nothing changed the second time"
    )


def test_one_that_is_used_stays(console: Console, ours: Tenant) -> None:
    identity = new_identity(ours)
    use(ours, identity)
    answer = console.person(ours, "admin").delete(f"/api/identities/{identity.pk}")
    assert (answer.status_code, code_of(answer)) == (409, "identity_in_use")
    assert "network" in answer.json()["detail"]
    use(ours, None)
    assert console.person(ours, "admin").delete(f"/api/identities/{identity.pk}").status_code == 204


ROLES = {"viewer": 0, "operator": 1, "admin": 2}


@pytest.mark.parametrize(
    ("method", "path", "least", "allowed_status"),
    [
        ("GET", "/api/organizations/ours/identities", "viewer", 200),
        ("GET", "/api/identities/{id}", "viewer", 200),
        ("GET", "/api/identities/{id}/resources", "viewer", 200),
        ("GET", "/api/identities/{id}/setup", "viewer", 200),
        ("POST", "/api/identities/{id}/test", "operator", 202),
        ("POST", "/api/identities/{id}/refresh", "operator", 202),
        ("POST", "/api/organizations/ours/identities", "admin", 201),
        ("PATCH", "/api/identities/{id}", "admin", 200),
        ("DELETE", "/api/identities/{id}", "admin", 204),
    ],
)
def test_each_role_may_do_its_part_and_strangers_see_nothing(
    console: Console, ours: Tenant, theirs: Tenant, method: str, path: str, least: str, allowed_status: int
) -> None:
    body = {"name": "Second", "provider": "ambient"}
    for role, rank in ROLES.items():
        address_of_it = path.format(id=new_identity(ours, name=f"For {role}").pk)
        answer = console.person(ours, role).request(method, address_of_it, json=body)
        expected = allowed_status if rank >= ROLES[least] else 403
        assert answer.status_code == expected, f"{role}: {answer.text}"
        assert console.person(theirs, role).request(method, address_of_it, json=body).status_code == 404
        assert console.anybody().request(method, address_of_it, json=body).status_code == 401


def test_what_to_run_is_there_for_each_cloud(console: Console, ours: Tenant) -> None:
    viewer = console.person(ours, "viewer")
    keys = {
        provider: [
            snippet["key"]
            for snippet in viewer.get(
                f"/api/identities/{new_identity(ours, provider, name=provider).pk}/setup"
            ).json()["data"]
        ]
        for provider in ("aws", "gcp", "azure", "ambient")
    }
    assert keys == {
        "aws": ["trust-policy", "cli", "terraform", "cloudformation"],
        "gcp": ["cli", "terraform"],
        "azure": ["cli", "terraform"],
        "ambient": [],
    }
