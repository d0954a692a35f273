"""A Spec that applies by itself: after a good plan, for whoever asked, unless something is in the way."""

from __future__ import annotations

import pytest

from console.accounts.models import Membership
from console.audit.models import AuditEvent
from console.plans.models import Plan
from runner.protocol import JobType
from tests.console.plans.review import (
    Person,
    a_destroy_plan,
    document,
    mostly_kept,
    protect,
    resource,
    set_guard,
)
from tests.console_app import Console
from tests.people import Tenant
from tests.plans_made import a_plan


@pytest.fixture
def ours(ours: Tenant) -> Tenant:
    ours.spec.auto_apply = True
    ours.spec.save(update_fields=["auto_apply"])
    return ours


def why_not(plan: Plan) -> str:
    """The reason on record for a plan that was not applied by itself."""
    event = AuditEvent.objects.get(target_id=plan.pk, action="plan.auto_apply_blocked")
    assert not plan.spec.jobs.filter(type=JobType.DEPLOY).exists()
    return f"{event.actor_kind}: {event.data['code']}"


def test_a_plan_that_succeeds_is_applied_for_whoever_asked(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours)
    deploy = ours.spec.jobs.get(type=JobType.DEPLOY)
    assert (deploy.plan_id, deploy.requested_by, deploy.status) == (plan.pk, ours.operator, "QUEUED")
    event = AuditEvent.objects.get(target_id=deploy.pk, action="plan.auto_applied")
    assert event.actor_kind == "system"
    runner = console.new_runner(ours, "deployer")
    assert runner.take_and_start().plan is not None


def test_a_plan_without_changes_is_not_applied(console: Console, ours: Tenant) -> None:
    a_plan(console, ours, json=document(resource("terraform_data.kept", "no-op")))
    assert not ours.spec.jobs.filter(type=JobType.DEPLOY).exists()


def test_a_plan_that_needs_approvals_waits_and_says_so(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours, spec=protect(ours.spec))
    assert why_not(plan) == "system: gate_closed"
    assert "auto-applies, but this plan is waiting." in Person(ours.operator).sees(plan)


def test_a_guarded_plan_waits_for_a_person(console: Console, ours: Tenant) -> None:
    lost = mostly_kept(resource("terraform_data.one", "delete"), kept=1)
    plan = a_plan(console, ours, spec=set_guard(ours.spec, share=0.3), json=lost)
    assert why_not(plan) == "system: confirmation_mismatch"
    assert "waiting for confirmation" in Person(ours.operator).sees(plan)


def test_a_closed_gate_keeps_the_plan_waiting(console: Console, ours: Tenant) -> None:
    ours.spec.gates = [{"kind": "job_success", "job_type": "CONNECTION_TEST"}]
    ours.spec.save(update_fields=["gates"])
    assert why_not(a_plan(console, ours)) == "system: gate_closed"


def test_nothing_is_applied_for_somebody_who_may_no_longer_operate(console: Console, ours: Tenant) -> None:
    ours.request()
    Membership.objects.filter(user=ours.operator).update(role="viewer")
    runner = console.new_runner(ours)
    claim = runner.take_and_start()
    plan_id = runner.upload_plan(claim).json()["plan_id"]
    assert runner.succeed(claim, result={"plan_id": plan_id}).json() == {"status": "SUCCESS"}
    assert why_not(Plan.objects.get(pk=plan_id)) == "system: forbidden"


def test_a_plan_to_destroy_is_never_applied_by_itself(console: Console, ours: Tenant) -> None:
    plan = a_destroy_plan(console, ours, ours.spec, "terraform_data.one")
    assert [job.type for job in ours.spec.jobs.all()] == ["PLAN"]
    assert plan.spent_by is None
