"""Gates: what must have happened before infrastructure may change, and who can open a closed one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from console.errors import BadInput, GateClosed
from console.jobs.gates import require_job_success
from console.jobs.models import Job
from console.plans.services import approve_plan, request_deploy
from runner.protocol import JobType
from specs.services import change_settings
from tests.console_app import Console, code_of
from tests.database_clock import finish_long_ago
from tests.people import Tenant
from tests.plans_made import a_plan

CONNECTION_TEST = {"kind": "job_success", "job_type": "CONNECTION_TEST", "max_age_days": 7}
APPROVAL = {"kind": "approval", "count": 1}


def run(console: Console, ours: Tenant, type: JobType, ending: str) -> Job:
    """One job of this type that ended so."""
    job = ours.request(type)
    runner = console.new_runner(ours, f"runner-{job.number}")
    claim = runner.take_and_start()
    assert runner.report(claim, ending, fatal=True).json() == {"status": ending}
    return job


def require(ours: Tenant, **options: Any) -> None:
    require_job_success(spec=ours.spec, type=JobType.CONNECTION_TEST, **options)


def test_open_when_such_a_job_has_succeeded(console: Console, ours: Tenant) -> None:
    run(console, ours, JobType.CONNECTION_TEST, "SUCCESS")
    require(ours)


def test_closed_when_there_is_no_such_job(ours: Tenant) -> None:
    with pytest.raises(GateClosed, match=r"network needs a successful CONNECTION_TEST\. Run CONNECTION_TEST"):
        require(ours)


def test_closed_with_only_jobs_that_did_not_succeed(console: Console, ours: Tenant) -> None:
    run(console, ours, JobType.CONNECTION_TEST, "FAILED")
    run(console, ours, JobType.CONNECTION_TEST, "CANCELLED")
    ours.request(JobType.CONNECTION_TEST)
    with pytest.raises(GateClosed):
        require(ours)
    console.new_runner(ours, "another").take_and_start()
    with pytest.raises(GateClosed):
        require(ours)


def test_closed_by_the_success_of_another_spec_or_type(console: Console, ours: Tenant) -> None:
    run(console, ours, JobType.CONNECTION_TEST, "SUCCESS")
    run(console, ours, JobType.PLAN, "SUCCESS")
    with pytest.raises(GateClosed):
        require_job_success(spec=ours.new_spec("other"), type=JobType.CONNECTION_TEST)
    with pytest.raises(GateClosed):
        require_job_success(spec=ours.spec, type=JobType.DRIFT_CHECK)


def test_closed_by_the_success_of_another_snapshot(console: Console, ours: Tenant) -> None:
    job = run(console, ours, JobType.PLAN, "SUCCESS")
    require_job_success(spec=ours.spec, type=JobType.PLAN, snapshot_hash=job.snapshot_hash)
    with pytest.raises(GateClosed, match="a successful PLAN of this configuration"):
        require_job_success(spec=ours.spec, type=JobType.PLAN, snapshot_hash="0" * 64)


def test_a_success_is_good_for_so_many_days(console: Console, ours: Tenant) -> None:
    job = run(console, ours, JobType.CONNECTION_TEST, "SUCCESS")
    finish_long_ago(job, timedelta(days=6, hours=23))
    require(ours, max_age_days=7)
    finish_long_ago(job, timedelta(hours=2))
    with pytest.raises(GateClosed, match="in the last 7 days"):
        require(ours, max_age_days=7)


def test_a_destroy_waits_for_the_specs_connection_test(console: Console, ours: Tenant) -> None:
    spec = ours.new_spec("gated", gates=[CONNECTION_TEST])
    operator = console.person(ours, "operator")
    body = {"spec": str(spec.pk), "type": "DESTROY", "confirmation": "gated"}
    answer = operator.post("/api/jobs", json=body)
    assert (answer.status_code, code_of(answer)) == (409, "gate_closed")
    assert answer.json()["required_job_type"] == "CONNECTION_TEST"
    assert "Run CONNECTION_TEST, then try again" in answer.json()["detail"]

    job = ours.request(JobType.CONNECTION_TEST, spec=spec)
    runner = console.new_runner(ours)
    runner.succeed(runner.take_and_start())
    assert job.number
    assert operator.post("/api/jobs", json=body).status_code == 202


@pytest.mark.parametrize("type", [JobType.PLAN, JobType.DRIFT_CHECK, JobType.CONNECTION_TEST])
def test_what_changes_nothing_passes_every_gate(ours: Tenant, type: JobType) -> None:
    spec = ours.new_spec("gated", gates=[CONNECTION_TEST, APPROVAL])
    assert ours.request(type, spec=spec).status == "QUEUED"


def test_a_deploy_waits_for_another_operators_approval(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours, spec=ours.new_spec("gated", gates=[APPROVAL]))
    operator = console.person(ours, "operator")
    answer = operator.post(f"/api/plans/{plan.pk}/deploy")
    assert (answer.status_code, code_of(answer)) == (409, "gate_closed")
    problem = answer.json()
    assert (problem["approvals_given"], problem["approvals_needed"]) == (0, 1)
    assert f"An operator other than {ours.operator.username} can approve it" in problem["detail"]

    assert console.person(ours, "second_operator").post(f"/api/plans/{plan.pk}/approvals").status_code == 201
    assert operator.post(f"/api/plans/{plan.pk}/deploy").status_code == 202


def test_whoever_asked_for_the_plan_cannot_approve_it(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours, spec=ours.new_spec("gated", gates=[APPROVAL]))
    answer = console.person(ours, "operator").post(f"/api/plans/{plan.pk}/approvals")
    assert (answer.status_code, code_of(answer)) == (403, "forbidden")


def test_a_viewer_cannot_approve(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours, spec=ours.new_spec("gated", gates=[APPROVAL]))
    assert console.person(ours, "viewer").post(f"/api/plans/{plan.pk}/approvals").status_code == 403


def test_one_person_approving_twice_is_one_approval(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours, spec=ours.new_spec("gated", gates=[{"kind": "approval", "count": 2}]))
    for _ in range(2):
        approve_plan(plan=plan, approved_by=ours.second_operator)
    with pytest.raises(GateClosed, match="1 of 2 approvals"):
        request_deploy(plan=plan, requested_by=ours.operator)
    approve_plan(plan=plan, approved_by=ours.admin)
    assert request_deploy(plan=plan, requested_by=ours.operator).status == "QUEUED"


def test_an_approval_is_for_one_plan_only(console: Console, ours: Tenant) -> None:
    spec = ours.new_spec("gated", gates=[APPROVAL])
    approve_plan(plan=a_plan(console, ours, spec=spec), approved_by=ours.second_operator)
    newer = a_plan(console, ours, spec=spec, plan=b"another plan file")
    with pytest.raises(GateClosed, match="0 of 1 approvals"):
        request_deploy(plan=newer, requested_by=ours.operator)


@pytest.mark.parametrize(
    ("gates", "entry"),
    [
        ({}, "gates"),
        ([{}], "gates[0].kind"),
        ([APPROVAL, {"kind": "weather"}], "gates[1].kind"),
        ([{"kind": "job_success"}], "gates[0].job_type"),
        ([{**CONNECTION_TEST, "max_age_days": 0}], "gates[0].max_age_days"),
        ([{**CONNECTION_TEST, "max_age_days": True}], "gates[0].max_age_days"),
        ([{"kind": "approval", "count": "two"}], "gates[0].count"),
    ],
)
def test_gates_that_make_no_sense_are_refused_with_their_place(ours: Tenant, gates: Any, entry: str) -> None:
    with pytest.raises(BadInput) as refusal:
        change_settings(spec=ours.spec, settings={"gates": gates}, changed_by=ours.admin)
    assert str(refusal.value).startswith(f"{entry}: ")


def test_gates_that_make_sense_are_taken_as_they_are(ours: Tenant) -> None:
    gates = [CONNECTION_TEST, APPROVAL]
    assert change_settings(spec=ours.spec, settings={"gates": gates}, changed_by=ours.admin).gates == gates
