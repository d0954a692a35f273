"""The jobs API: who may see and do what, pages and filters."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from console.accounts.models import ApiToken, Membership
from console.jobs.models import Job
from runner.protocol import JobType
from tests.console_app import Console, Http, code_of
from tests.people import Tenant, some_uuid

READS = ["", "/attempts", "/events", "/logs", "/logs?format=text", "/logs?format=stream"]
ACTIONS = ["/cancel", "/retry"]


@pytest.fixture
def viewer(console: Console, ours: Tenant) -> Http:
    return console.person(ours, "viewer")


def ended_job(ours: Tenant) -> Job:
    job = ours.request()
    Job.objects.filter(pk=job.pk).update(status="FAILED", finished_at=Now())
    return job


@pytest.mark.parametrize("read", READS)
def test_every_member_reads(viewer: Http, ours: Tenant, read: str) -> None:
    assert viewer.get(f"/api/jobs/{ended_job(ours).pk}{read}").status_code == 200


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_another_organizations_job_is_not_there(
    console: Console, ours: Tenant, theirs: Tenant, read: str, role: str
) -> None:
    stranger = console.person(theirs, role)
    answer = stranger.get(f"/api/jobs/{ended_job(ours).pk}{read}")
    unknown = stranger.get(f"/api/jobs/{some_uuid()}{read}")
    assert (answer.status_code, code_of(answer)) == (404, "not_found")
    assert answer.json() == unknown.json(), "nothing tells it from a job that does not exist"


@pytest.mark.parametrize("action", ACTIONS)
def test_another_organizations_job_cannot_be_touched(
    console: Console, ours: Tenant, theirs: Tenant, action: str
) -> None:
    job = ours.request()
    answer = console.person(theirs, "admin").post(f"/api/jobs/{job.pk}{action}")
    assert (answer.status_code, code_of(answer)) == (404, "not_found")
    assert Job.objects.get().status == "QUEUED"


def test_another_organizations_spec_cannot_be_planned(console: Console, ours: Tenant, theirs: Tenant) -> None:
    answer = console.person(theirs, "admin").post(
        "/api/jobs", json={"spec": str(ours.spec.pk), "type": "PLAN"}
    )
    assert (answer.status_code, code_of(answer)) == (404, "not_found")
    assert not Job.objects.exists()


@pytest.mark.parametrize("action", ACTIONS)
def test_a_viewer_does_nothing(viewer: Http, ours: Tenant, action: str) -> None:
    answer = viewer.post(f"/api/jobs/{ours.request().pk}{action}")
    assert (answer.status_code, code_of(answer)) == (403, "forbidden")
    assert Job.objects.get().status == "QUEUED"


def test_a_viewer_asks_for_nothing(viewer: Http, ours: Tenant) -> None:
    answer = viewer.post("/api/jobs", json={"spec": str(ours.spec.pk), "type": "PLAN"})
    assert (answer.status_code, code_of(answer)) == (403, "forbidden")
    assert "operator role" in answer.json()["detail"]


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_operators_and_admins_ask(console: Console, ours: Tenant, role: str) -> None:
    answer = console.person(ours, role).post("/api/jobs", json={"spec": str(ours.spec.pk), "type": "PLAN"})
    assert answer.status_code == 202


@pytest.mark.parametrize("path", ["/api/jobs", "/api/organizations/ours/queue"])
def test_nobody_reads_without_signing_in(console: Console, ours: Tenant, path: str) -> None:
    answer = console.anybody().get(path)
    assert (answer.status_code, code_of(answer)) == (401, "not_signed_in")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("path", [*READS, *ACTIONS])
def test_no_job_is_open_without_signing_in(console: Console, ours: Tenant, path: str) -> None:
    job = ours.request()
    method = "POST" if path in ACTIONS else "GET"
    assert console.anybody().request(method, f"/api/jobs/{job.pk}{path}").status_code == 401


def test_a_token_that_is_revoked_or_expired_opens_nothing(console: Console, ours: Tenant) -> None:
    token = ours.token_of(ours.operator)
    person = console.with_authorization(f"Bearer {token}")
    assert person.get("/api/jobs").status_code == 200
    ApiToken.objects.update(expires_at=Now() - timedelta(seconds=1))
    assert person.get("/api/jobs").status_code == 401
    ApiToken.objects.update(expires_at=None, revoked_at=Now())
    assert person.get("/api/jobs").status_code == 401


def test_a_token_opens_its_own_organization_only(console: Console, ours: Tenant, theirs: Tenant) -> None:
    Membership.objects.create(user=ours.operator, organization=theirs.organization, role="admin")
    job = theirs.request()
    person = console.person(ours, "operator")
    assert person.get(f"/api/jobs/{job.pk}").status_code == 404
    assert person.get("/api/jobs").json()["data"] == []
    assert person.get("/api/jobs?organization=theirs").status_code == 404


def test_pages_have_a_number_a_limit_and_the_total(viewer: Http, ours: Tenant) -> None:
    numbers = [ours.request(spec=ours.new_spec(f"spec-{n}")).number for n in range(25)]
    second = viewer.get("/api/jobs?page=2&limit=10").json()
    assert second["pagination"] == {"page": 2, "limit": 10, "total": 25, "total_is_exact": True}
    assert [job["number"] for job in second["data"]] == numbers[::-1][10:20]
    assert len(viewer.get("/api/jobs?page=3&limit=10").json()["data"]) == 5
    assert viewer.get("/api/jobs?page=4&limit=10").json()["data"] == []
    assert len(viewer.get("/api/jobs").json()["data"]) == 20


@pytest.mark.parametrize(
    "query", ["limit=101", "limit=0", "page=0", "page=x", "status=RUNNING", "type=APPLY"]
)
def test_a_list_that_makes_no_sense_is_refused(viewer: Http, query: str) -> None:
    answer = viewer.get(f"/api/jobs?{query}")
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == [query.partition("=")[0]]


def test_a_hundred_at_once_is_the_most(viewer: Http) -> None:
    assert viewer.get("/api/jobs?limit=100").status_code == 200


def test_filters_by_type_status_and_spec(console: Console, viewer: Http, ours: Tenant) -> None:
    plans = [ours.request(spec=ours.new_spec(f"spec-{n}")) for n in range(2)]
    destroy = ours.request(JobType.DESTROY)
    runner = console.new_runner(ours)
    assert runner.take_and_start().job_id == str(plans[0].pk)

    def numbers(query: str) -> list[int]:
        return [job["number"] for job in viewer.get(f"/api/jobs?{query}").json()["data"]]

    assert numbers("type=PLAN") == [2, 1]
    assert numbers("type=DESTROY") == [destroy.number]
    assert numbers("status=QUEUED") == [3, 2]
    assert numbers("status=PROCESSING") == [1]
    assert numbers("status=SUCCESS") == []
    assert numbers(f"spec={ours.spec.pk}") == [3]
    assert numbers("type=PLAN&status=QUEUED") == [2]
    assert numbers("organization=ours") == [3, 2, 1]


def test_the_list_has_ones_own_organizations_only(
    console: Console, viewer: Http, ours: Tenant, theirs: Tenant
) -> None:
    theirs.request()
    assert viewer.get("/api/jobs").json()["pagination"]["total"] == 0


def test_a_job_shows_everything_but_its_configuration(viewer: Http, ours: Tenant) -> None:
    detail = viewer.get(f"/api/jobs/{ours.request().pk}").json()
    assert {"id", "status", "type", "requested_by", "snapshot_hash", "timeout_seconds", "waiting"} <= set(
        detail
    )
    assert "config_snapshot" not in detail
    assert detail["created_at"].endswith("Z")


def test_an_address_that_is_no_id_is_not_there(viewer: Http) -> None:
    assert code_of(viewer.get("/api/jobs/seventeen")) == "not_found"


def test_what_is_not_json_is_refused_as_a_problem(console: Console, ours: Tenant) -> None:
    operator = console.person(ours, "operator")
    answer = operator.post("/api/jobs", content=b"{", headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert operator.post("/api/jobs", content=b"x=1").status_code == 415
    assert operator.delete("/api/jobs").status_code == 405


def test_every_problem_has_the_same_members(viewer: Http) -> None:
    problem = viewer.get(f"/api/jobs/{some_uuid()}").json()
    assert problem == {
        "type": "urn:slipway:problem:not_found",
        "title": "Not found",
        "status": 404,
        "detail": "There is nothing here, or you do not have access to it.",
        "code": "not_found",
    }
