"""Runners: registered with a token of one use, known by a credential of their own, revoked at once."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from console.audit.models import AuditEvent
from console.runners.models import RegistrationToken, Runner, RunnerCredential
from console.runners.services import create_registration_token, revoke_runner
from tests.console_app import Console, code_of
from tests.people import Tenant, facts


def registration(token: str, name: str = "worker", **changed: Any) -> dict[str, Any]:
    return {"token": token, "name": name, "facts": {**asdict(facts()), **changed}}


@pytest.fixture
def token(ours: Tenant) -> str:
    return create_registration_token(organization=ours.organization, pool=ours.pool, created_by=ours.admin)


def test_a_token_is_exchanged_for_a_credential(console: Console, ours: Tenant, token: str) -> None:
    answer = console.anybody().post("/api/runners/register", json=registration(token))
    assert answer.status_code == 201
    assert answer.json()["credential"].startswith("slr_")
    runner = Runner.objects.get()
    assert (runner.name, runner.status, runner.organization) == ("worker", "ONLINE", ours.organization)
    assert list(runner.pools.all()) == [ours.pool]
    ours.request()
    assert console.runner(answer.json()["credential"]).claim() is not None


def test_neither_token_nor_credential_is_stored_in_clear(console: Console, token: str) -> None:
    credential = (
        console.anybody().post("/api/runners/register", json=registration(token)).json()["credential"]
    )
    stored = str(list(RegistrationToken.objects.values())) + str(list(RunnerCredential.objects.values()))
    assert token not in stored
    assert credential not in stored


def test_a_token_is_used_once(console: Console, token: str) -> None:
    anybody = console.anybody()
    assert anybody.post("/api/runners/register", json=registration(token)).status_code == 201
    answer = anybody.post("/api/runners/register", json=registration(token, "another"))
    assert (answer.status_code, code_of(answer)) == (401, "registration_refused")


@pytest.mark.parametrize("round", range(3))
def test_a_token_used_by_two_at_once_registers_one(console: Console, token: str, round: int) -> None:
    asked = [
        console.anybody().begin("POST", "/api/runners/register", json=registration(token, f"worker-{n}"))
        for n in range(4)
    ]
    assert sorted(one.result(10).status_code for one in asked) == [201, 401, 401, 401]
    assert Runner.objects.count() == 1


def test_a_token_expires(console: Console, token: str) -> None:
    RegistrationToken.objects.update(expires_at=Now() - timedelta(seconds=1))
    answer = console.anybody().post("/api/runners/register", json=registration(token))
    assert (answer.status_code, code_of(answer)) == (401, "registration_refused")


def test_an_unknown_token_is_refused(console: Console, ours: Tenant) -> None:
    answer = console.anybody().post("/api/runners/register", json=registration("slt_unknown"))
    assert (answer.status_code, code_of(answer)) == (401, "registration_refused")


def test_a_name_that_is_online_is_refused_and_the_token_is_not_lost(
    console: Console, ours: Tenant, token: str
) -> None:
    ours.new_runner("worker")
    answer = console.anybody().post("/api/runners/register", json=registration(token))
    assert (answer.status_code, code_of(answer)) == (409, "conflict")
    assert (
        console.anybody().post("/api/runners/register", json=registration(token, "other")).status_code == 201
    )


def test_an_offline_runners_name_is_taken_over_and_its_credential_ends(
    console: Console, ours: Tenant, token: str
) -> None:
    _, old = ours.new_runner("worker")
    Runner.objects.update(status="OFFLINE")
    new = console.anybody().post("/api/runners/register", json=registration(token)).json()["credential"]
    body = console.runner(old).claim_request()
    assert console.runner(old).post("/api/jobs/claim", json=body).status_code == 401
    assert console.runner(new).post("/api/jobs/claim", json=body).status_code == 204
    assert Runner.objects.count() == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"name": ""},
        {"name": "  "},
        {"facts": {}},
        {"facts": {**asdict(facts()), "types": "PLAN"}},
        {"facts": {**asdict(facts()), "slots": "many"}},
        {"token": 5},
    ],
)
def test_a_malformed_registration_is_refused_and_the_token_is_not_lost(
    console: Console, token: str, changed: dict[str, Any]
) -> None:
    anybody = console.anybody()
    answer = anybody.post("/api/runners/register", json={**registration(token), **changed})
    assert (answer.status_code, code_of(answer)) == (400, "invalid_message")
    assert anybody.post("/api/runners/register", json=registration(token)).status_code == 201


def test_facts_beyond_all_measure_are_cut(console: Console, token: str) -> None:
    answer = console.anybody().post(
        "/api/runners/register",
        json=registration(token, "n" * 500, version="v" * 500, types=["PLAN", "x" * 500], slots=10**6),
    )
    assert answer.status_code == 201, answer.text
    runner = Runner.objects.get()
    assert runner.types[0] == "PLAN"
    assert all(len(type) <= 30 for type in runner.types)
    assert runner.slots <= 1_000


def test_hello_tells_the_runner_who_it_is(console: Console, ours: Tenant) -> None:
    runner, credential = ours.new_runner("worker")
    answer = console.runner(credential).post("/api/runners/hello", json=asdict(facts(slots=4)))
    hello = answer.json()
    assert (hello["runner_id"], hello["name"], hello["organization"], hello["pools"]) == (
        str(runner.pk),
        "worker",
        "ours",
        ["default"],
    )
    assert hello["lease_seconds"] == 120
    assert hello["server_time"]
    assert Runner.objects.get().slots == 4


def test_a_revoked_runner_is_refused_everything_at_once(console: Console, ours: Tenant) -> None:
    ours.request()
    runner, credential = ours.new_runner("worker")
    client = console.runner(credential)
    claim = client.take_and_start()
    revoke_runner(runner=runner, revoked_by=ours.admin)
    for answer in (
        client.post("/api/runners/hello", json=asdict(facts())),
        client.heartbeat(claim),
        client.log(claim, 1, "late"),
        client.succeed(claim),
        client.post("/api/jobs/claim", json=client.claim_request()),
    ):
        assert (answer.status_code, code_of(answer)) == (401, "runner_unknown")
    assert AuditEvent.objects.filter(action="runner.revoked", actor_id=ours.admin.pk).count() == 1


@pytest.mark.parametrize("authorization", ["", "Bearer", "Basic abc", "Bearer slr_", "slr_abc"])
def test_a_credential_comes_as_a_bearer_token(console: Console, ours: Tenant, authorization: str) -> None:
    answer = console.with_authorization(authorization).post("/api/runners/hello", json=asdict(facts()))
    assert (answer.status_code, code_of(answer)) == (401, "runner_unknown")


def test_another_method_is_not_allowed(console: Console, ours: Tenant) -> None:
    runner = console.new_runner(ours)
    answer = runner.get("/api/runners/hello")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert code_of(runner.get("/api/runners/nothing")) == "not_found"
