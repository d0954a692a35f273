"""The destroy guard: losing much, or something precious, asks for the name, and the server reads it."""

from __future__ import annotations

from typing import Any

import pytest

from console.audit.models import AuditEvent
from console.plans.models import Plan
from tests.console.plans.review import Person, mostly_kept, refusal_in, resource, set_guard
from tests.console_app import Console, code_of
from tests.people import Tenant
from tests.plans_made import a_plan

ONE_LOST = resource("terraform_data.one", "delete")
ONE_REPLACED = resource("aws_db_instance.main", "delete", "create")
DEPOSED = resource("terraform_data.old", "delete", deposed="2f4a")


def guarded_plan(console: Console, ours: Tenant, *lost: Any, kept: int, **guard: Any) -> Plan:
    return a_plan(console, ours, spec=set_guard(ours.spec, **guard), json=mostly_kept(*lost, kept=kept))


@pytest.mark.parametrize(
    ("lost", "kept", "guard", "reason"),
    [
        ([ONE_LOST], 2, {"share": 0.3}, "1 of 3 resources; more than 30% needs confirmation"),
        ([ONE_LOST, ONE_REPLACED], 2, {"share": 0.4}, "2 of 4 resources; more than 40% needs confirmation"),
        ([ONE_REPLACED], 99, {"types": ["aws_db_instance"]}, "aws_db_instance.main, of a guarded type"),
        (
            [ONE_REPLACED],
            99,
            {"types": ["aws_db_*"], "share": 0.5},
            "aws_db_instance.main, of a guarded type",
        ),
    ],
)
def test_a_guarded_plan_is_refused_until_the_name_is_typed(
    console: Console, ours: Tenant, lost: list[Any], kept: int, guard: dict[str, Any], reason: str
) -> None:
    plan = guarded_plan(console, ours, *lost, kept=kept, **guard)
    operator, person = console.person(ours, "operator"), Person(ours.operator)
    for body in ({}, {"confirmation": "Network"}):
        answer = operator.post(f"/api/plans/{plan.pk}/deploy", json=body)
        assert (answer.status_code, code_of(answer)) == (400, "confirmation_mismatch")
        assert reason in answer.json()["detail"]
        assert answer.json()["guard"] == operator.get(f"/api/plans/{plan.pk}").json()["guard"]
        assert reason in refusal_in(person.applies(plan, **body))
    assert reason in person.sees(plan)
    dialog = person.reads("plan-apply", plan.spec, plan.number)
    assert "Type <code>network</code> to confirm" in dialog
    assert lost[0]["address"] in dialog
    assert person.applies(plan, confirmation="network").status_code == 200
    assert AuditEvent.objects.get(target_id=plan.pk, action="plan.confirmed").data["guard"]


@pytest.mark.parametrize(
    ("lost", "kept", "guard"),
    [
        ([ONE_LOST], 3, {"share": 0.3}),
        ([ONE_LOST], 0, {}),
        ([ONE_REPLACED], 9, {"share": 0.3, "types": ["aws_rds_cluster"]}),
        ([DEPOSED], 1, {"share": 0.1}),
    ],
)
def test_what_stays_below_the_guard_needs_a_click_only(
    console: Console, ours: Tenant, lost: list[Any], kept: int, guard: dict[str, Any]
) -> None:
    plan = guarded_plan(console, ours, *lost, kept=kept, **guard)
    assert console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy").status_code == 202


def test_what_is_new_or_imported_is_no_part_of_the_whole(console: Console, ours: Tenant) -> None:
    """One of two is lost, however many are added at the same time."""
    creations = [resource(f"terraform_data.new{index}", "create") for index in range(8)]
    imported = resource("terraform_data.found", "no-op", change={"importing": {"id": "i-1"}})
    plan = guarded_plan(console, ours, ONE_LOST, *creations, imported, kept=1, share=0.4)
    assert plan.resource_count == 2
    assert code_of(console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy")) == (
        "confirmation_mismatch"
    )
