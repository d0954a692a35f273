"""A speculative plan shows what any revision would do, and nobody can apply it."""

from __future__ import annotations

from console.jobs.models import Job
from console.plans.selectors import latest_plan_of
from tests.console.plans.review import Person, fresh_plan, plan_made_by, refusal_in, revise
from tests.console_app import Console, code_of
from tests.people import Tenant


def test_an_old_revision_is_planned_and_its_plan_is_never_applied(console: Console, ours: Tenant) -> None:
    first = ours.spec.revisions.get().document
    revise(ours.spec, files={"main.tf": "# second"})
    operator = console.person(ours, "operator")
    answer = operator.post("/api/jobs", json={"spec": str(ours.spec.pk), "type": "PLAN", "revision": 1})
    assert answer.status_code == 202
    job = Job.objects.get(pk=answer.json()["id"])
    assert job.config_snapshot["files"] == first["files"]
    plan = plan_made_by(console, ours, job)
    assert plan.speculative

    refused = operator.post(f"/api/plans/{plan.pk}/deploy")
    assert (refused.status_code, code_of(refused)) == (409, "conflict")
    assert "is speculative and cannot be applied" in refused.json()["detail"]
    person = Person(ours.operator)
    assert "cannot be applied" in refusal_in(person.applies(plan))
    page = person.sees(fresh_plan(plan))
    assert "Preview of revision 1" in " ".join(page.split())
    assert "/apply" not in page
    assert latest_plan_of(ours.spec) is None


def test_not_even_the_newest_revision_can_be_applied_from_a_look(console: Console, ours: Tenant) -> None:
    person = Person(ours.operator)
    assert person.presses("revision-plan", ours.spec, 1).status_code == 200
    plan = plan_made_by(console, ours, ours.spec.jobs.get())
    assert "cannot be applied" in refusal_in(person.applies(plan))


def test_a_look_needs_an_operator_and_a_revision_that_is_there(console: Console, ours: Tenant) -> None:
    body = {"spec": str(ours.spec.pk), "type": "PLAN"}
    viewer, operator = console.person(ours, "viewer"), console.person(ours, "operator")
    assert viewer.post("/api/jobs", json={**body, "revision": 1}).status_code == 403
    assert operator.post("/api/jobs", json={**body, "revision": 9}).status_code == 404
    assert operator.post("/api/jobs", json={**body, "revision": 1, "destroy": True}).status_code == 400
    assert Person(ours.viewer).presses("revision-plan", ours.spec, 1).status_code == 403
