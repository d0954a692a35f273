"""Retrying what ended part-way: what was reviewed goes on, what goes beyond it is reviewed anew."""

from __future__ import annotations

from typing import Any

import pytest

from console.errors import Conflict, PlanStale
from console.jobs.models import Job
from console.jobs.services import cancel_job, request_destroy, retry_job
from console.plans.models import Plan
from console.plans.services import request_deploy
from runner.protocol import ReviewedChange
from runner.retry import beyond_review
from tests.console.plans.review import Person, document, fresh_plan, protect, refusal_in, resource
from tests.console_app import Console, RunnerClient, code_of
from tests.people import Tenant, fresh
from tests.plans_made import a_plan

PLANNED = document(
    resource("terraform_data.one", "create"), resource("terraform_data.two", "delete", "create")
)


@pytest.fixture
def runner(console: Console, ours: Tenant) -> RunnerClient:
    return console.new_runner(ours, "deployer")


def a_failed_deploy(console: Console, ours: Tenant, runner: RunnerClient) -> Job:
    plan = a_plan(console, ours, json=PLANNED)
    job = request_deploy(plan=plan, requested_by=ours.operator, confirmation=plan.spec.name)
    assert runner.fail(runner.take_and_start()).json() == {"status": "FAILED"}
    return fresh(job)


def test_a_retry_is_a_new_job_of_the_same_snapshot_and_its_claim_says_what_was_reviewed(
    console: Console, ours: Tenant, runner: RunnerClient
) -> None:
    job = a_failed_deploy(console, ours, runner)
    answer = console.person(ours, "operator").post(f"/api/jobs/{job.pk}/retry")
    assert answer.status_code == 202
    again = Job.objects.get(pk=answer.json()["id"])
    assert (again.type, again.plan_id, again.retry_of_id) == ("DEPLOY", None, job.pk)
    assert again.config_snapshot == job.config_snapshot
    claim = runner.take_and_start()
    assert claim.plan is None
    assert claim.retry is not None
    assert claim.retry.plan_number == 1
    assert [(change.address, change.action) for change in claim.retry.changes] == [
        ("terraform_data.two", "replace"),
        ("terraform_data.one", "create"),
    ]


def test_the_retry_of_a_retry_goes_on_with_the_same_plan(
    console: Console, ours: Tenant, runner: RunnerClient
) -> None:
    job = a_failed_deploy(console, ours, runner)
    second = retry_job(job=job, requested_by=ours.operator)
    runner.fail(runner.take_and_start())
    retry_job(job=fresh(second), requested_by=ours.operator)
    claim = runner.take_and_start()
    assert claim.retry is not None
    assert claim.retry.plan_number == 1


def test_what_goes_beyond_the_review_becomes_a_plan_to_review_and_then_to_apply(
    console: Console, ours: Tenant, runner: RunnerClient
) -> None:
    retry_job(job=a_failed_deploy(console, ours, runner), requested_by=ours.operator)
    claim = runner.take_and_start()
    uploaded = runner.upload_plan(claim, json=document(resource("terraform_data.new", "create")))
    assert uploaded.status_code == 201
    decision = {"decision": "review", "plan_number": 1, "beyond": ["create terraform_data.new"]}
    ended = {"error_code": "review_needed", "error_message": "Nothing was applied: …", "fatal": True}
    assert runner.fail(claim, **ended, result={"retry": decision}).json() == {"status": "FAILED"}

    operator = console.person(ours, "operator")
    detail = operator.get(f"/api/jobs/{claim.job_id}").json()
    assert (detail["error_code"], detail["result"]["retry"]) == ("review_needed", decision)
    job, plan = Job.objects.get(pk=claim.job_id), Plan.objects.get(number=2)
    person = Person(ours.operator)
    page = job_page(person, job)
    assert "Review the new plan." in page
    assert "Review plan #2" in page
    assert "create terraform_data.new" in person.sees(fresh_plan(plan))
    assert not ours.spec.outputs.exists()
    assert operator.post(f"/api/plans/{plan.pk}/deploy").status_code == 202


def test_a_retry_that_went_on_says_so(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    again = retry_job(job=a_failed_deploy(console, ours, runner), requested_by=ours.operator)
    assert "plans again from the current state" in job_page(Person(ours.operator), again)
    decision = {"decision": "went_on", "plan_number": 1, "beyond": []}
    runner.succeed(runner.take_and_start(), result={"retry": decision, "outputs": {}})
    assert "so it continued automatically" in job_page(Person(ours.operator), fresh(again))
    assert console.person(ours, "viewer").get(f"/api/jobs/{again.pk}").json()["result"]["retry"] == decision


def test_a_deploy_that_never_began_is_not_retried_its_plan_is_unspent(console: Console, ours: Tenant) -> None:
    job = request_deploy(plan=a_plan(console, ours), requested_by=ours.operator)
    cancel_job(job=job, requested_by=ours.operator)
    with pytest.raises(Conflict, match=r"never began.*Plan 1 is unspent: apply it again"):
        retry_job(job=fresh(job), requested_by=ours.operator)


def test_a_deploy_that_succeeded_is_not_retried(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    job = request_deploy(plan=a_plan(console, ours), requested_by=ours.operator)
    runner.succeed(runner.take_and_start(), result={"outputs": {}})
    answer = console.person(ours, "operator").post(f"/api/jobs/{job.pk}/retry")
    assert (answer.status_code, code_of(answer)) == (409, "conflict")


def test_a_deploy_that_was_overtaken_is_not_retried(
    console: Console, ours: Tenant, runner: RunnerClient
) -> None:
    """The later one may have changed the same resources on purpose; retrying would quietly undo that."""
    job = a_failed_deploy(console, ours, runner)
    later = request_deploy(plan=a_plan(console, ours, plan=b"another"), requested_by=ours.operator)
    runner.succeed(runner.take_and_start(), result={"outputs": {}})
    with pytest.raises(PlanStale, match=f"{later} ran since"):
        retry_job(job=job, requested_by=ours.operator)
    refused = Person(ours.operator).presses_job("job-retry", job)
    assert "ran since" in refusal_in(refused)


def test_a_destroy_without_a_plan_is_not_retried_once_the_spec_is_protected(
    console: Console, ours: Tenant, runner: RunnerClient
) -> None:
    job = request_destroy(spec=ours.spec, confirmation=ours.spec.name, requested_by=ours.operator)
    runner.fail(runner.take_and_start())
    protect(ours.spec)
    answer = console.person(ours, "operator").post(f"/api/jobs/{job.pk}/retry")
    assert (answer.status_code, code_of(answer)) == (409, "gate_closed")


def test_only_a_plan_or_a_retry_may_upload_a_plan(
    console: Console, ours: Tenant, runner: RunnerClient
) -> None:
    request_deploy(plan=a_plan(console, ours), requested_by=ours.operator)
    answer = runner.upload_plan(runner.take_and_start())
    assert (answer.status_code, code_of(answer)) == (409, "stale_claim")


ADDRESS = "terraform_data.one"


@pytest.mark.parametrize(
    ("reviewed", "left", "beyond"),
    [
        ("create", ["create"], False),
        ("create", ["no-op"], False),
        ("create", ["read"], False),
        ("create", ["delete", "create"], True),  # tainted: its creation ended half-way
        ("create", ["update"], True),
        ("update", ["update"], False),
        ("update", ["delete"], True),
        ("delete", ["delete"], False),
        ("delete", ["create"], True),
        ("replace", ["delete", "create"], False),
        ("replace", ["create", "delete"], False),
        ("replace", ["create"], False),
        ("replace", ["delete"], True),  # it is not wanted any more: nobody has seen that
        ("forget", ["forget"], False),
        ("forget", ["delete"], True),
        ("create", ["something", "new"], True),
    ],
)
def test_what_may_be_left_of_each_reviewed_action(reviewed: str, left: list[str], beyond: bool) -> None:
    changes = [ReviewedChange(address=ADDRESS, action=reviewed)]
    changes_beyond = beyond_review({"resource_changes": [resource(ADDRESS, *left)]}, changes)
    assert bool(changes_beyond) == beyond


@pytest.mark.parametrize(
    ("document", "beyond"),
    [
        ({"resource_changes": [resource("terraform_data.two", "create")]}, ["create terraform_data.two"]),
        ({"resource_changes": [resource(ADDRESS, "delete", deposed="2f4a")]}, []),
        (
            {"resource_changes": [resource("t.found", "no-op", change={"importing": {"id": "i"}})]},
            ["import t.found"],
        ),
        (
            {"resource_changes": [resource("t.new", "no-op", previous_address="t.old")]},
            ["move t.new"],
        ),
        ({"resource_changes": [resource("data.t.read", "read") | {"mode": "data"}]}, []),
        ({"deferred_changes": [{"resource_change": resource("t.later", "create")}]}, ["deferred t.later"]),
        ({"action_invocations": [{"address": "action.t.x"}]}, ["invoke action.t.x"]),
        ({}, []),
    ],
)
def test_other_addresses_and_other_kinds_are_beyond_the_review(
    document: dict[str, Any], beyond: list[str]
) -> None:
    assert beyond_review(document, [ReviewedChange(address=ADDRESS, action="replace")]) == beyond


def job_page(person: Person, job: Job) -> str:
    return person.reads_job(job)
