"""A state that nobody could save is kept with its job: sealed, for operators, from its own runner only."""

from __future__ import annotations

import json

from console.audit.models import AuditEvent
from console.jobs.models import ErroredState
from runner.protocol import Claim
from tests.console_app import Console, Http, RunnerClient, code_of
from tests.people import Tenant

STATE = json.dumps({"version": 4, "serial": 3, "lineage": "abc", "resources": [], "outputs": {}}).encode()


def job_path(job_id: str, rest: str = "") -> str:
    return f"/api/jobs/{job_id}{rest}"


def upload(runner: Http, claim: Claim, body: bytes = STATE) -> int:
    path = job_path(claim.job_id, f"/errored-state?claim_id={claim.claim_id}")
    return runner.put(path, content=body).status_code


def started(console: Console, ours: Tenant) -> tuple[RunnerClient, Claim]:
    runner = console.new_runner(ours)
    ours.request()
    return runner, runner.take_and_start()


def test_an_operator_downloads_what_the_runner_uploaded(console: Console, ours: Tenant) -> None:
    runner, claim = started(console, ours)
    assert upload(runner, claim) == 201
    assert upload(runner, claim) == 201, "a repeat is harmless"
    operator = console.person(ours, "operator")
    (errored_state,) = operator.get(job_path(claim.job_id, "/errored-states")).json()["data"]
    assert (errored_state["attempt"], errored_state["runner"], errored_state["size_bytes"]) == (
        1,
        "runner",
        len(STATE),
    )
    assert operator.get(errored_state["url"]).content == STATE
    assert AuditEvent.objects.filter(action="job.errored_state_downloaded").count() == 1


def test_it_is_sealed_and_not_for_everyone(console: Console, ours: Tenant, theirs: Tenant) -> None:
    runner, claim = started(console, ours)
    upload(runner, claim)
    assert b"lineage" not in bytes(ErroredState.objects.get().sealed_body)
    path = job_path(claim.job_id, f"/errored-states/{claim.claim_id}")
    assert console.person(ours, "viewer").get(path).status_code == 403
    assert console.person(theirs, "admin").get(path).status_code == 404
    assert console.anybody().get(path).status_code == 401


def test_it_is_taken_after_the_end_of_the_claim_and_changes_nothing_else(
    console: Console, ours: Tenant
) -> None:
    runner, claim = started(console, ours)
    runner.fail(claim, fatal=True)
    assert upload(runner, claim) == 201
    job = console.person(ours, "viewer").get(job_path(claim.job_id)).json()
    assert job["status"] == "FAILED"


def test_only_the_runner_of_the_attempt_can_leave_one(console: Console, ours: Tenant, theirs: Tenant) -> None:
    _, claim = started(console, ours)
    for stranger in (console.new_runner(ours, "another"), console.new_runner(theirs)):
        path = job_path(claim.job_id, f"/errored-state?claim_id={claim.claim_id}")
        assert code_of(stranger.put(path, content=STATE)) == "stale_claim"
    assert not ErroredState.objects.exists()


def test_what_is_no_state_is_refused(console: Console, ours: Tenant) -> None:
    runner, claim = started(console, ours)
    for body in (b"", b"not json", b"[]", b'{"serial": 1}'):
        assert upload(runner, claim, body) == 400
