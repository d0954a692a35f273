"""A plan that no longer fits is refused with exactly what changed, through the API and beside the button."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from console.plans.models import Plan
from console.plans.staleness import differences
from specs.models import VariableSet
from specs.variables import keep_secret
from tests.console.plans.review import Person, fresh_plan, refusal_in, revise, write_state
from tests.console_app import Console, code_of
from tests.people import Tenant
from tests.plans_made import a_plan

Change = Callable[[Tenant, Plan], Any]


def edit_a_file(ours: Tenant, plan: Plan) -> None:
    revise(plan.spec, files={**plan.job.config_snapshot["files"], "main.tf": "# other", "new.tf": ""})


def edit_a_variable(ours: Tenant, plan: Plan) -> None:
    revise(plan.spec, variables={**plan.job.config_snapshot["variables"], "stack": "changed-value"})


def replace_a_secret(ours: Tenant, plan: Plan) -> None:
    digest = keep_secret("changed-secret", organization_id=ours.organization.pk)
    revise(plan.spec, secrets={"variables": {"password": digest}, "environment": {}})


def edit_a_variable_set(ours: Tenant, plan: Plan) -> None:
    VariableSet.objects.create(
        organization=ours.organization,
        name="shared",
        for_all_specs=True,
        variables={"environment": {"COMPANY": "changed-value"}},
    )


def move_the_state_on(ours: Tenant, plan: Plan) -> None:
    write_state(ours, plan.spec, "one", serial=7)


def let_it_age(ours: Tenant, plan: Plan) -> None:
    Plan.objects.filter(pk=plan.pk).update(created_at=plan.created_at - timedelta(hours=25))


CHANGES: dict[str, tuple[Change, str]] = {
    "files": (edit_a_file, 'file "main.tf" changed and file "new.tf" was added since.'),
    "variables": (edit_a_variable, 'variable "stack" was added since.'),
    "secrets": (replace_a_secret, 'variable "password" was added since.'),
    "sets": (edit_a_variable_set, 'environment variable "COMPANY" was added since.'),
    "state": (move_the_state_on, "the state moved on since, from serial 0 to 7."),
    "age": (let_it_age, "it is 25 hours old, and network allows 24."),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_stale_plan_is_refused_with_what_changed(console: Console, ours: Tenant, what: str) -> None:
    plan = a_plan(console, ours)
    change, told = CHANGES[what]
    change(ours, plan)
    answer = console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy")
    assert (answer.status_code, code_of(answer)) == (409, "plan_stale")
    assert answer.json()["detail"] == f"Plan 1 is stale: {told} Plan again, then apply."
    for value in ("changed-value", "changed-secret"):
        assert value not in answer.text

    person = Person(ours.operator)
    assert told in refusal_in(person.applies(fresh_plan(plan)))
    page = person.sees(fresh_plan(plan))
    assert "Stale" in page
    assert "Plan again" in page
    assert "plan-apply" not in page and "/apply" not in page


def test_a_state_of_another_lineage_is_told_as_such(console: Console, ours: Tenant) -> None:
    write_state(ours, ours.spec, "one", lineage="first", serial=3)
    plan = a_plan(console, ours, lineage="second", serial=3)
    answer = console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy")
    assert code_of(answer) == "plan_stale"
    assert "the state was replaced by another one since" in answer.json()["detail"]


def test_a_configuration_that_is_restored_makes_the_plan_fit_again(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours)
    before = plan.job.config_snapshot["files"]
    revise(plan.spec, files={"main.tf": ""})
    operator = console.person(ours, "operator")
    assert operator.get(f"/api/plans/{plan.pk}").json()["stale"]
    revise(plan.spec, files=before)
    assert operator.get(f"/api/plans/{plan.pk}").json()["stale"] == ""
    assert operator.post(f"/api/plans/{plan.pk}/deploy").status_code == 202


def test_a_plan_that_aged_in_the_queue_does_not_start(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours)
    assert console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy").status_code == 202
    edit_a_variable(ours, plan)
    runner = console.new_runner(ours, "late")
    claim = runner.take()
    answer = runner.start(claim)
    assert (answer.status_code, code_of(answer)) == (409, "plan_stale")
    assert 'variable "stack" was added since' in answer.json()["detail"]
    assert fresh_plan(plan).spent_at is None
    assert runner.fail(claim, error_code="plan_stale", fatal=True).json() == {"status": "FAILED"}


def test_a_spent_plan_is_refused_through_the_api_and_the_page(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours)
    operator = console.person(ours, "operator")
    assert operator.post(f"/api/plans/{plan.pk}/deploy").status_code == 202
    runner = console.new_runner(ours, "deployer")
    runner.succeed(runner.take_and_start(), result={"outputs": {}})
    answer = operator.post(f"/api/plans/{plan.pk}/deploy")
    assert (answer.status_code, code_of(answer)) == (409, "plan_spent")
    person = Person(ours.operator)
    assert "a plan is applied once" in refusal_in(person.applies(plan))
    assert "This plan was applied" in person.sees(plan)


def test_the_answer_to_a_repeated_request_is_the_first_job_even_when_the_plan_is_spent(
    console: Console, ours: Tenant
) -> None:
    plan = a_plan(console, ours)
    operator, key = console.person(ours, "operator"), {"Idempotency-Key": "once"}
    first = operator.post(f"/api/plans/{plan.pk}/deploy", headers=key)
    console.new_runner(ours, "deployer").take_and_start()
    again = operator.post(f"/api/plans/{plan.pk}/deploy", headers=key)
    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])


def test_a_plan_whose_job_has_not_ended_cannot_be_applied_or_approved(console: Console, ours: Tenant) -> None:
    job = ours.request()
    runner = console.new_runner(ours)
    plan_id = runner.upload_plan(runner.take_and_start()).json()["plan_id"]
    answer = console.person(ours, "operator").post(f"/api/plans/{plan_id}/deploy")
    assert (answer.status_code, code_of(answer)) == (409, "gate_closed")
    assert f"comes from {job}, which is PROCESSING" in answer.json()["detail"]
    assert (
        code_of(console.person(ours, "second_operator").post(f"/api/plans/{plan_id}/approvals"))
        == "gate_closed"
    )


def test_everything_that_can_differ_is_called_by_its_name() -> None:
    planned = {
        "files": {"a.tf": "1", "b.tf": "2"},
        "variables": {"x": 1},
        "secrets": {"variables": {"token": "one"}, "environment": {"KEY": "k"}},
        "terraform_version": None,
        "backend": {"kind": "console"},
        "something_new": 1,
    }
    now = {
        "files": {"a.tf": "1"},
        "variables": {"x": 1, "y": 2},
        "secrets": {"variables": {"token": "two"}},
        "terraform_version": "~> 1.11",
        "backend": {"kind": "s3"},
        "something_new": 2,
    }
    assert differences(planned, now) == [
        'file "b.tf" was removed',
        'variable "token" changed',
        'variable "y" was added',
        'environment variable "KEY" was removed',
        "the state backend changed",
        "something new changed",
        "the Terraform version changed",
    ]
    assert differences(planned, planned) == []
