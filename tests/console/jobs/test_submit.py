"""Asking for a job: what is accepted, what is a repeat, and what is refused."""

from __future__ import annotations

from collections import Counter

import httpx
import pytest
from django.urls import reverse

from console.audit.models import AuditEvent
from console.jobs.models import Job
from tests.console_app import Console, Http, code_of
from tests.people import Tenant


@pytest.fixture
def operator(console: Console, ours: Tenant) -> Http:
    return console.person(ours, "operator")


def body(ours: Tenant, **fields: str) -> dict[str, str]:
    return {"spec": str(ours.spec.pk), "type": "PLAN", **fields}


def ask(api: Http, ours: Tenant, *, key: str | None = None, **fields: str) -> httpx.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return api.post("/api/jobs", json=body(ours, **fields), headers=headers)


def test_a_request_is_accepted_with_the_jobs_address(operator: Http, ours: Tenant) -> None:
    answer = ask(operator, ours)
    assert answer.status_code == 202
    job = Job.objects.get()
    assert answer.headers["Location"] == f"/api/jobs/{job.pk}"
    assert operator.get(answer.headers["Location"]).json()["id"] == str(job.pk)
    assert answer.json()["status"] == "QUEUED"
    assert answer.json()["requested_by"] == ours.operator.username


def test_the_request_is_on_record(operator: Http, ours: Tenant) -> None:
    job_id = ask(operator, ours).json()["id"]
    event = AuditEvent.objects.get(target_id=job_id)
    assert (event.action, event.actor_name, event.actor_kind) == (
        "job.requested",
        ours.operator.username,
        "person",
    )


def test_the_same_key_again_returns_the_first_job(operator: Http, ours: Tenant) -> None:
    first, second = ask(operator, ours, key="one"), ask(operator, ours, key="one")
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["id"] == second.json()["id"]
    assert Job.objects.count() == 1


def test_the_same_key_still_returns_the_first_job_when_it_has_ended(operator: Http, ours: Tenant) -> None:
    job_id = ask(operator, ours, key="one").json()["id"]
    operator.post(f"/api/jobs/{job_id}/cancel")
    again = ask(operator, ours, key="one")
    assert (again.json()["id"], again.json()["status"]) == (job_id, "CANCELLED")


def test_the_same_key_for_another_request_is_refused(operator: Http, ours: Tenant) -> None:
    ask(operator, ours, key="one")
    answer = ask(operator, ours, key="one", type="DESTROY", confirmation="network")
    assert (answer.status_code, code_of(answer)) == (422, "idempotency_mismatch")
    answer = ask(operator, ours, key="one", destroy="true")
    assert (answer.status_code, code_of(answer)) == (422, "idempotency_mismatch"), (
        "a plan with another intent"
    )
    assert Job.objects.count() == 1


def test_a_key_belongs_to_its_organization(
    console: Console, operator: Http, ours: Tenant, theirs: Tenant
) -> None:
    ask(operator, ours, key="one")
    assert ask(console.person(theirs, "operator"), theirs, key="one").status_code == 202
    assert Job.objects.count() == 2


@pytest.mark.parametrize("round", range(3))
def test_equal_keys_at_once_make_one_job(console: Console, ours: Tenant, round: int) -> None:
    ours.spec  # noqa: B018  made before the race
    people = [console.person(ours, "operator") for _ in range(6)]
    requests = [
        person.begin("POST", "/api/jobs", json=body(ours), headers={"Idempotency-Key": "one"})
        for person in people
    ]
    answers = [request.result(30) for request in requests]
    assert {answer.status_code for answer in answers} == {202}, [answer.text for answer in answers]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert Job.objects.count() == 1


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_a_key_has_a_sensible_length(operator: Http, ours: Tenant, key: str) -> None:
    answer = operator.post("/api/jobs", json=body(ours), headers={"Idempotency-Key": key})
    assert (answer.status_code, code_of(answer)) == (400, "bad_input")


def test_a_second_job_of_a_spec_is_refused_with_the_address_of_the_first(
    operator: Http, ours: Tenant
) -> None:
    first = ask(operator, ours).json()
    answer = ask(operator, ours)
    assert (answer.status_code, code_of(answer)) == (409, "job_active")
    problem = answer.json()
    assert problem["holder_id"] == first["id"]
    assert problem["holder_url"] == reverse("job", args=["ours", first["number"]])
    assert f"network is in use by PLAN #{first['number']}, which is QUEUED" in problem["detail"]


@pytest.mark.parametrize("round", range(3))
def test_of_eight_clicks_at_once_exactly_one_wins(console: Console, ours: Tenant, round: int) -> None:
    ours.spec  # noqa: B018  made before the race
    people = [console.person(ours, "operator") for _ in range(8)]
    requests = [person.begin("POST", "/api/jobs", json=body(ours)) for person in people]
    assert Counter(request.result(30).status_code for request in requests) == {202: 1, 409: 7}
    assert Job.objects.count() == 1


def test_when_the_first_has_ended_the_next_is_accepted(operator: Http, ours: Tenant) -> None:
    job_id = ask(operator, ours).json()["id"]
    operator.post(f"/api/jobs/{job_id}/cancel")
    assert ask(operator, ours).status_code == 202


def test_job_numbers_count_up_in_each_organization(operator: Http, ours: Tenant, theirs: Tenant) -> None:
    assert [ours.request(spec=ours.new_spec(f"spec-{n}")).number for n in range(3)] == [1, 2, 3]
    assert theirs.request().number == 1


def test_a_destroy_is_confirmed_with_the_name_of_the_spec(operator: Http, ours: Tenant) -> None:
    answer = ask(operator, ours, type="DESTROY", confirmation="netwrok")
    assert (answer.status_code, code_of(answer)) == (400, "confirmation_mismatch")
    assert not Job.objects.exists()
    assert ask(operator, ours, type="DESTROY", confirmation="network").json()["type"] == "DESTROY"


@pytest.mark.parametrize("type", ["DEPLOY", "DEPLOY_WORKER", "CONNECTION_TEST"])
def test_what_is_not_asked_for_on_a_spec_is_refused(operator: Http, ours: Tenant, type: str) -> None:
    answer = ask(operator, ours, type=type)
    assert (answer.status_code, code_of(answer)) == (400, "bad_input")
    assert f"{type} is not requested on a Spec" in answer.text
    assert "POST /api/plans/{plan_id}/deploy" in answer.text


@pytest.mark.parametrize(
    "fields", [{"type": "APPLY"}, {"spec": "network"}, {"spec": ""}], ids=["type", "spec", "no spec"]
)
def test_a_malformed_request_says_which_field(operator: Http, ours: Tenant, fields: dict[str, str]) -> None:
    answer = ask(operator, ours, **fields)
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == list(fields)
