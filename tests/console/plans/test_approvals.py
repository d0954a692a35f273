"""Approvals: who gave one, who may, what they are bound to, and when they stop counting."""

from __future__ import annotations

import pytest

from console.accounts.models import Membership
from console.audit.models import AuditEvent
from tests.console.plans.review import (
    Person,
    fresh_plan,
    mostly_kept,
    protect,
    refusal_in,
    resource,
    revise,
    set_guard,
)
from tests.console_app import Console, code_of
from tests.people import Tenant
from tests.plans_made import a_plan


def test_a_protected_spec_needs_as_many_other_people_as_it_says(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours, spec=protect(ours.spec, approvals=2))
    operator = console.person(ours, "operator")
    for approver, given_count in (("second_operator", 0), ("admin", 1)):
        answer = operator.post(f"/api/plans/{plan.pk}/deploy")
        assert (answer.status_code, code_of(answer)) == (409, "gate_closed")
        assert (answer.json()["approvals_given"], answer.json()["approvals_needed"]) == (given_count, 2)
        assert console.person(ours, approver).post(f"/api/plans/{plan.pk}/approvals").status_code == 201
    assert operator.post(f"/api/plans/{plan.pk}/deploy").status_code == 202


def test_the_page_says_who_gave_one_and_who_may_and_has_a_button_for_those(
    console: Console, ours: Tenant
) -> None:
    plan = a_plan(console, ours, spec=protect(ours.spec))
    requester, approver = Person(ours.operator), Person(ours.second_operator)
    page = requester.sees(plan)
    assert "0 of 1" in page
    assert "You requested this plan, so someone else has to approve it." in " ".join(page.split())
    assert f"Can approve: {ours.admin}, {ours.second_operator}." in page
    assert "Approve this plan" not in page
    assert "/apply" not in page
    assert "Plan 1 has 0 of 1 approvals" in refusal_in(requester.applies(plan))
    assert "The requester of a plan cannot approve it" in refusal_in(requester.approves(plan))
    assert "Approve this plan" not in Person(ours.viewer).sees(plan)

    assert "Approve this plan" in approver.sees(plan)
    assert approver.approves(plan).status_code == 200
    page = requester.sees(plan)
    assert "1 of 1" in page
    assert str(ours.second_operator) in page
    assert "Withdraw" not in page
    assert "Withdraw" in approver.sees(plan)
    assert requester.applies(plan).status_code == 200


def test_a_new_plan_starts_at_zero(console: Console, ours: Tenant) -> None:
    spec = protect(ours.spec)
    first = a_plan(console, ours, spec=spec)
    Person(ours.admin).approves(first)
    second = a_plan(console, ours, spec=spec)
    answer = console.person(ours, "operator").post(f"/api/plans/{second.pk}/deploy")
    assert answer.json()["approvals_given"] == 0
    assert "0 of 1" in Person(ours.operator).sees(second)


def test_an_approval_is_bound_to_the_fingerprint(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours, spec=protect(ours.spec))
    Person(ours.admin).approves(plan)
    type(plan).objects.filter(pk=plan.pk).update(provider_lock_sha256="f" * 64)
    answer = console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy")
    assert (code_of(answer), answer.json()["approvals_given"]) == ("gate_closed", 0)
    assert Person(ours.admin).approves(plan).status_code == 200
    assert console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy").status_code == 202


def test_approvals_of_a_plan_that_went_stale_are_shown_as_withdrawn(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours, spec=protect(ours.spec))
    Person(ours.admin).approves(plan)
    revise(ours.spec, variables={"stack": "another"})
    approvals = console.person(ours, "operator").get(f"/api/plans/{plan.pk}").json()["approvals"]
    assert (approvals["given"], approvals["void"]) == ([], [ours.admin.username])
    assert "withdrawn: the plan is stale" in Person(ours.operator).sees(plan)
    answer = console.person(ours, "second_operator").post(f"/api/plans/{plan.pk}/approvals")
    assert code_of(answer) == "plan_stale"


def test_an_approval_can_be_taken_back_until_the_plan_is_applied(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours, spec=protect(ours.spec))
    admin, operator = console.person(ours, "admin"), console.person(ours, "operator")
    admin.post(f"/api/plans/{plan.pk}/approvals")
    assert admin.delete(f"/api/plans/{plan.pk}/approvals").json()["approvals"]["given"] == []
    assert code_of(operator.post(f"/api/plans/{plan.pk}/deploy")) == "gate_closed"
    admin.post(f"/api/plans/{plan.pk}/approvals")
    assert operator.post(f"/api/plans/{plan.pk}/deploy").status_code == 202
    console.new_runner(ours, "deployer").take_and_start()
    assert code_of(admin.delete(f"/api/plans/{plan.pk}/approvals")) == "plan_spent"
    actions = AuditEvent.objects.filter(target_id=plan.pk).order_by("id").values_list("action", flat=True)
    assert list(actions) == ["plan.approved", "plan.approval_withdrawn", "plan.approved"]


def test_an_approval_taken_back_in_the_queue_stops_the_start(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours, spec=protect(ours.spec))
    admin = console.person(ours, "admin")
    admin.post(f"/api/plans/{plan.pk}/approvals")
    assert console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy").status_code == 202
    admin.delete(f"/api/plans/{plan.pk}/approvals")
    runner = console.new_runner(ours, "deployer")
    answer = runner.start(runner.take())
    assert (answer.status_code, code_of(answer)) == (409, "gate_closed")
    assert fresh_plan(plan).spent_by is None


def test_the_yes_of_somebody_who_may_no_longer_operate_does_not_count(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours, spec=protect(ours.spec))
    Person(ours.second_operator).approves(plan)
    Membership.objects.filter(user=ours.second_operator).update(role="viewer")
    answer = console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy")
    assert (code_of(answer), answer.json()["approvals_given"]) == ("gate_closed", 0)


def test_strangers_find_no_plan_to_approve(console: Console, ours: Tenant, theirs: Tenant) -> None:
    plan = a_plan(console, ours, spec=protect(ours.spec))
    for method in ("POST", "DELETE"):
        answer = console.person(theirs, "admin").request(method, f"/api/plans/{plan.pk}/approvals")
        assert answer.status_code == 404


@pytest.mark.parametrize(("guarded", "needed"), [(True, 1), (False, 0)])
def test_a_guarded_plan_of_a_protected_spec_needs_an_approval_in_any_case(
    console: Console, ours: Tenant, guarded: bool, needed: int
) -> None:
    spec = set_guard(protect(ours.spec, approvals=0), share=0.3)
    lost = [resource("terraform_data.one", "delete")] if guarded else []
    plan = a_plan(console, ours, spec=spec, json=mostly_kept(*lost, kept=1))
    answer = console.person(ours, "operator").get(f"/api/plans/{plan.pk}").json()
    assert answer["approvals"]["needed"] == needed
