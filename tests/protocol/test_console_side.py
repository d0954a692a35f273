"""The console takes the golden requests, and answers in the shape of the golden answers."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import URLPattern
from drf_spectacular.generators import SchemaGenerator

from console import urls_wire
from console.runners.services import create_registration_token
from console.wire_openapi import ENDPOINTS
from runner.protocol import Claim, from_wire
from tests.console_app import Console, RunnerClient
from tests.people import Tenant, new_key
from tests.protocol.golden_messages import golden, message_types


@pytest.fixture
def runner(console: Console, ours: Tenant) -> RunnerClient:
    return console.new_runner(ours, "build-1")


def claim_plan(runner: RunnerClient, ours: Tenant) -> Claim:
    ours.request()
    answer = runner.post("/api/jobs/claim", json={**golden("ClaimRequest"), "claim_key": new_key()})
    assert answer.status_code == 200, answer.text
    assert answer.json().keys() == golden("Claim").keys()
    assert answer.json()["state"].keys() == golden("StateAccess").keys()
    return from_wire(Claim, answer.json())


def test_a_runners_own_requests(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    hello = runner.post("/api/runners/hello", json=golden("RunnerFacts"))
    assert hello.status_code == 200, hello.text
    assert hello.json().keys() == golden("HelloAnswer").keys()
    rotated = runner.post("/api/runners/rotate")
    assert (rotated.status_code, rotated.json().keys()) == (201, golden("RotationAnswer").keys())
    goodbye = runner.post("/api/runners/goodbye", json=golden("Goodbye"))
    assert (goodbye.status_code, goodbye.json()) == (200, {})


def test_a_registration(console: Console, ours: Tenant) -> None:
    token = create_registration_token(organization=ours.organization, pool=ours.pool, created_by=None)
    request = {**golden("RegistrationRequest"), "token": token}
    answer = console.anybody().post("/api/runners/register", json=request)
    assert answer.status_code == 201, answer.text
    assert answer.json().keys() == golden("RegistrationAnswer").keys()


def test_a_job_from_the_claim_to_the_final_report(ours: Tenant, runner: RunnerClient) -> None:
    claim = claim_plan(runner, ours)
    path, claim_field = f"/api/jobs/{claim.job_id}", {"claim_id": claim.claim_id}
    beat = runner.post(f"{path}/heartbeat", json={**golden("HeartbeatRequest"), **claim_field})
    assert beat.json().keys() == golden("HeartbeatAnswer").keys()
    answer = runner.put(
        f"{path}/status", json={**golden("StatusReport"), **claim_field, "status": "PROCESSING"}
    )
    assert answer.json() == {"status": "PROCESSING"}
    appended = runner.post(f"{path}/logs", json={**golden("LogBatch"), **claim_field})
    assert appended.json() == golden("LogAnswer")
    final_answer = runner.put(f"{path}/status", json={**golden("StatusReport"), **claim_field})
    assert final_answer.json() == golden("StatusAnswer"), final_answer.text


def test_the_openapi_document_has_every_address_that_runners_call() -> None:
    described = {(endpoint.path, endpoint.method) for endpoint in ENDPOINTS}
    paths = {path for path, _ in described}
    assert paths == {_path(pattern) for pattern in urls_wire.urlpatterns}
    document = openapi_document()
    for path, method in described:
        operation = document["paths"][path][method]
        assert operation["tags"] == ["runners"]
        assert operation["responses"]


def test_the_openapi_document_describes_each_message_field_by_field() -> None:
    schemas = openapi_document()["components"]["schemas"]
    for name in message_types():
        schema = schemas[f"Runner.{name}"]
        assert schema["properties"].keys() == golden(name).keys()
        assert set(schema["required"]) <= golden(name).keys()


def test_people_and_runners_share_addresses_without_getting_in_each_others_way() -> None:
    logs = openapi_document()["paths"]["/api/jobs/{job_id}/logs"]
    assert {"get", "post"} <= logs.keys()
    assert logs["post"]["security"] == [{"runnerCredential": []}]


def openapi_document() -> dict[str, Any]:
    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return document


def _path(pattern: URLPattern) -> str:
    return "/" + str(pattern.pattern).replace("<uuid:", "{").replace(">", "}")
