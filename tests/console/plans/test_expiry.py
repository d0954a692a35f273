"""A Spec that has expired: pages say so, nothing more is applied, and its destroy is asked for once."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from console.audit.models import ActorKind, AuditEvent
from console.errors import SpecExpired
from console.janitor.services import run_once
from console.jobs.models import Job
from console.jobs.services import retry_job
from console.plans.expiry import act_on_expired_specs
from console.plans.services import request_deploy
from runner.protocol import JobType
from specs.models import Spec
from tests.console.plans.review import (
    Person,
    document,
    fresh_plan,
    plan_made_by,
    protect,
    refusal_in,
    resource,
    write_state,
)
from tests.console_app import Console, code_of
from tests.database_clock import a_console_has_been_serving
from tests.people import Tenant, fresh
from tests.plans_made import a_plan


def let_expire(spec: Spec, ago: timedelta = timedelta(minutes=1)) -> Spec:
    """As if an expiry that was set in time has passed."""
    spec.expires_at = timezone.now().replace(microsecond=0) - ago
    spec.save(update_fields=["expires_at"])
    return spec


def noted(spec: Spec) -> AuditEvent:
    return AuditEvent.objects.get(target_id=spec.pk, action="spec.expired")


def test_a_plan_to_destroy_is_queued_once_and_waits_for_review(console: Console, ours: Tenant) -> None:
    a_console_has_been_serving()
    spec = ours.spec
    write_state(ours, spec, "one", "two")
    let_expire(spec)
    run_once()
    (job,) = Job.objects.filter(spec=spec)
    assert (job.type, job.status, job.requested_by) == ("PLAN", "QUEUED", None)
    assert job.config_snapshot["destroy"] is True
    event = noted(spec)
    assert (event.actor_kind, event.data["outcome"], event.data["job"]) == (
        ActorKind.SYSTEM, "destroy_planned", job.number,
    )  # fmt: skip
    run_once()
    assert Job.objects.filter(spec=spec).count() == 1
    deletions = document(resource("terraform_data.one", "delete"), resource("terraform_data.two", "delete"))
    plan = plan_made_by(console, ours, fresh(job), json=deletions, lineage="3f9f2c1e-lineage", serial=1)
    run_once()
    assert Job.objects.filter(spec=spec).count() == 1, "what was acted on is not acted on again"
    assert "plans its destroy, for people to review" in Person(ours.viewer).reads("spec", spec)
    # An expiry stops what applies, not what destroys.
    destroy = request_deploy(plan=plan, requested_by=ours.operator, confirmation=spec.name)
    assert destroy.type == JobType.DESTROY


def test_where_changes_apply_by_themselves_it_is_destroyed(ours: Tenant) -> None:
    ours.spec.auto_apply = True
    ours.spec.save(update_fields=["auto_apply"])
    write_state(ours, ours.spec, "one")
    let_expire(ours.spec)
    assert act_on_expired_specs() == 1
    (job,) = Job.objects.filter(spec=ours.spec)
    assert (job.type, job.plan_id, job.requested_by) == ("DESTROY", None, None)
    assert noted(ours.spec).data["outcome"] == "destroy"


def test_what_is_protected_is_only_planned_and_then_needs_its_approvals(
    console: Console, ours: Tenant
) -> None:
    spec = protect(ours.spec)
    spec.auto_apply = True
    spec.save(update_fields=["auto_apply"])
    write_state(ours, spec, "one")
    let_expire(spec)
    assert act_on_expired_specs() == 1
    job = Job.objects.get(spec=spec)
    assert job.type == "PLAN"
    deletion = document(resource("terraform_data.one", "delete"))
    plan = plan_made_by(console, ours, job, json=deletion, lineage="3f9f2c1e-lineage", serial=1)
    assert Job.objects.filter(spec=spec).count() == 1, "a plan to destroy is never applied by itself"
    operator, approver = (console.person(ours, role) for role in ("operator", "second_operator"))
    deploy, approve = f"/api/plans/{plan.pk}/deploy", f"/api/plans/{plan.pk}/approvals"
    # Nobody asked for this plan, so whoever applies it is the requester: their own yes is not enough.
    assert operator.post(approve).status_code == 201
    answer = operator.post(deploy, json={"confirmation": spec.name})
    assert code_of(answer) == "gate_closed"
    assert answer.json()["detail"] == (
        "Plan 1 has 0 of 1 approvals. An operator other than ours-operator can approve it."
    )
    assert approver.post(deploy, json={"confirmation": spec.name}).status_code == 202, "two people agree"


def test_of_two_janitors_one_acts(ours: Tenant) -> None:
    write_state(ours, ours.spec, "one")
    let_expire(ours.spec)
    together, acted = threading.Barrier(2), []

    def janitor() -> None:
        together.wait(10)
        try:
            acted.append(act_on_expired_specs())
        finally:
            connection.close()

    threads = [threading.Thread(target=janitor) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(acted) == [0, 1]
    assert Job.objects.filter(spec=ours.spec).count() == 1
    assert noted(ours.spec).data["outcome"] == "destroy_planned"


def test_another_expiry_is_acted_on_again(console: Console, ours: Tenant) -> None:
    let_expire(ours.spec)
    assert act_on_expired_specs() == 1
    assert noted(ours.spec).data["outcome"] == "nothing_to_destroy"
    assert not Job.objects.filter(spec=ours.spec).exists()
    later = (timezone.now() + timedelta(days=3)).isoformat()
    answer = console.person(ours, "operator").request(
        "PATCH", f"/api/specs/{ours.spec.pk}", json={"expires_at": later}
    )
    assert (answer.status_code, answer.json()["expired"]) == (200, False)
    assert act_on_expired_specs() == 0
    write_state(ours, ours.spec, "one")
    let_expire(Spec.objects.get(pk=ours.spec.pk), timedelta(seconds=30))
    assert act_on_expired_specs() == 1
    assert Job.objects.get(spec=ours.spec).type == "PLAN"


def test_a_job_that_holds_the_spec_is_waited_for(console: Console, ours: Tenant) -> None:
    write_state(ours, ours.spec, "one")
    ours.request()
    let_expire(ours.spec)
    assert act_on_expired_specs() == 0
    runner = console.new_runner(ours)
    runner.succeed(runner.take_and_start())
    assert act_on_expired_specs() == 1
    assert Job.objects.filter(spec=ours.spec).count() == 2


def test_what_cannot_be_planned_is_said_once(ours: Tenant) -> None:
    write_state(ours, ours.spec, "one")
    newest = ours.spec.revisions.latest("number")
    type(newest).objects.create(
        spec=ours.spec, number=2, message="broken", document={**newest.document, "variables": {"nope": 1}}
    )
    let_expire(ours.spec)
    assert act_on_expired_specs() == 1
    assert act_on_expired_specs() == 0
    assert noted(ours.spec).data["code"] == "bad_input"
    assert "could not be queued" in Person(ours.viewer).reads("spec", ours.spec)


def test_a_deploy_is_refused_through_the_api_and_the_page(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours)
    let_expire(ours.spec)
    answer = console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy")
    assert (answer.status_code, code_of(answer)) == (409, "spec_expired")
    assert "Set a later expiry in its settings" in answer.json()["detail"]
    person = Person(ours.operator)
    assert "Set a later expiry" in refusal_in(person.applies(fresh_plan(plan)))
    assert "expired at" in person.sees(fresh_plan(plan))
    assert Job.objects.filter(spec=ours.spec, type="DEPLOY").count() == 0


def test_a_deploy_that_expires_in_the_queue_does_not_start(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours)
    deploy = request_deploy(plan=plan, requested_by=ours.operator)
    let_expire(ours.spec)
    runner = console.new_runner(ours, "late")
    claim = runner.take()
    answer = runner.start(claim)
    assert (answer.status_code, code_of(answer)) == (409, "spec_expired")
    assert fresh_plan(plan).spent_at is None
    runner.fail(claim, error_code="spec_expired", fatal=True)
    assert fresh(deploy).status == "FAILED"
    with pytest.raises(SpecExpired):
        retry_job(job=fresh(deploy), requested_by=ours.operator)


def test_pages_say_when_it_expires_and_that_it_has(ours: Tenant) -> None:
    spec, person = ours.spec, Person(ours.viewer)
    spec.expires_at = timezone.now() + timedelta(days=3, minutes=1)
    spec.save(update_fields=["expires_at"])
    for page in (person.reads("spec", spec), person.reads_list(spec)):
        assert "expires" in page
        assert "in 3 d" in page
    let_expire(spec, timedelta(hours=2))
    for page in (person.reads("spec", spec), person.reads_list(spec)):
        assert "Expired" in page
        assert "2 h ago" in page


def test_an_expiry_that_has_passed_is_refused_and_one_that_is_saved_again_stays(
    console: Console, ours: Tenant
) -> None:
    operator, address = console.person(ours, "operator"), f"/api/specs/{ours.spec.pk}"
    answer = operator.request("PATCH", address, json={"expires_at": "2020-01-01T00:00:00Z"})
    assert (answer.status_code, answer.json()["field"]) == (400, "expires_at")
    assert "is in the past" in answer.json()["detail"]
    let_expire(ours.spec)
    expiry = operator.get(address).json()["expires_at"]
    assert operator.request("PATCH", address, json={"expires_at": expiry, "region": "eu"}).status_code == 200
    assert act_on_expired_specs() == 1
    page = Person(ours.operator).reads("spec-settings", ours.spec)
    assert f'value="{expiry.removesuffix("Z")}"' in page
