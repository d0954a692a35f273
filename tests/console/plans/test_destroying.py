"""Destroying: the dialog says what is there now, the name is read by the server, and what is protected is
planned, reviewed and approved first."""

from __future__ import annotations

import json
import re

from console.jobs.services import request_destroy
from console.plans.inventory import addresses_in_state
from console.state.backends import choose_backend
from console.state.services import import_state
from runner.protocol import JobType
from tests.console.plans.review import (
    Person,
    a_destroy_plan,
    document,
    fresh_plan,
    plan_made_by,
    protect,
    refusal_in,
    resource,
    write_state,
)
from tests.console_app import Console, code_of
from tests.people import Tenant, fresh
from tests.plans_made import a_plan


def unspaced(html: str) -> str:
    """The page without the spaces between tags."""
    return re.sub(r">\s+<", "><", html)


def test_the_dialog_lists_what_is_in_the_state_now_by_address_only(ours: Tenant) -> None:
    write_state(ours, ours.spec, "network", "server", password="hunter2")
    dialog = Person(ours.operator).reads("spec-destroy", ours.spec)
    assert "2 resources" in dialog
    assert "<li>terraform_data.network</li><li>terraform_data.server</li>" in unspaced(dialog)
    assert "hunter2" not in dialog


def kept_in_s3(tenant: Tenant) -> None:
    choose_backend(
        organization=tenant.organization, spec=tenant.spec, kind="s3",
        settings={"bucket": "states", "region": "eu-west-1"}, environment=None, chosen_by=tenant.admin,
    )  # fmt: skip


def test_of_a_state_that_is_kept_elsewhere_the_dialog_says_what_is_known(
    console: Console, ours: Tenant
) -> None:
    kept_in_s3(ours)
    person = Person(ours.operator)
    dialog = person.reads("spec-destroy", ours.spec)
    assert "stored in s3" in dialog
    assert "Everything applied from here has been destroyed" in dialog
    assert "empty" not in dialog
    network = {"mode": "managed", "address": "terraform_data.network[0]", "values": {"input": "hunter2"}}
    inner = {"resources": [{"mode": "managed", "address": "module.m.terraform_data.one"}]}
    data = {"mode": "data", "address": "data.x.y"}
    planned = {"root_module": {"resources": [network, data], "child_modules": [inner]}}
    plan = a_plan(console, ours, json=document(planned_values=planned))
    assert console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy").status_code == 202
    runner = console.new_runner(ours, "deployer")
    runner.succeed(runner.take_and_start(), result={"outputs": {}})
    dialog = person.reads("spec-destroy", ours.spec)
    assert 'Plan <span class="mono">#1</span>, applied' in dialog
    assert "<strong>2 resources</strong>" in dialog
    assert "<li>module.m.terraform_data.one</li><li>terraform_data.network[0]</li>" in unspaced(dialog)
    assert "Destroy all resources" in dialog
    assert "hunter2" not in dialog
    assert person.presses("spec-destroy", ours.spec, confirmation=ours.spec.name).status_code < 400
    runner.succeed(runner.take_and_start())
    assert "Everything applied from here has been destroyed since" in person.reads("spec-destroy", ours.spec)


def test_addresses_have_their_module_and_index(ours: Tenant) -> None:
    instances = [{"index_key": 0}, {"index_key": 1, "deposed": "ab12"}]
    keyed = [{"index_key": 'a"b'}]
    resources = [
        {"mode": "managed", "type": "t", "name": "n", "module": "module.m[0]", "instances": instances},
        {"mode": "managed", "type": "t", "name": "k", "instances": keyed},
        {"mode": "data", "type": "t", "name": "d", "instances": [{}]},
    ]
    body = {"version": 4, "serial": 1, "lineage": "l", "resources": resources}
    import_state(spec=ours.spec, body=json.dumps(body).encode(), imported_by=ours.admin)
    assert addresses_in_state(ours.spec) == [
        "module.m[0].t.n[0]",
        "module.m[0].t.n[1] (deposed ab12)",
        't.k["a\\"b"]',
    ]


def test_a_wrong_name_is_refused_on_the_server(ours: Tenant) -> None:
    answer = Person(ours.operator).presses("spec-destroy", ours.spec, confirmation="Network")
    assert answer.status_code == 400
    assert "Nothing was changed" in refusal_in(answer)
    assert not ours.spec.jobs.exists()


def test_a_protected_spec_is_not_destroyed_without_a_reviewed_plan(console: Console, ours: Tenant) -> None:
    spec = protect(ours.spec)
    body = {"spec": str(spec.pk), "type": "DESTROY", "confirmation": spec.name}
    answer = console.person(ours, "operator").post("/api/jobs", json=body)
    assert (answer.status_code, code_of(answer)) == (409, "gate_closed")
    assert "create a destroy plan, have it approved" in answer.json()["detail"]
    person = Person(ours.operator)
    refused = person.presses("spec-destroy", spec, confirmation=spec.name)
    assert "network is protected" in refusal_in(refused)
    dialog = person.reads("spec-destroy", spec)
    assert "Plan destroy" in dialog
    assert "confirmation" not in dialog


def test_a_reviewed_destroy_plan_is_approved_confirmed_and_run_as_a_destroy(
    console: Console, ours: Tenant
) -> None:
    spec, person = protect(ours.spec), Person(ours.operator)
    assert person.presses("spec-plan-destroy", spec).status_code == 200
    job = spec.jobs.get()
    assert (job.type, job.config_snapshot["destroy"]) == ("PLAN", True)
    plan = plan_made_by(console, ours, job, json=document(resource("terraform_data.network", "delete")))
    assert plan.destroy
    assert "to destroy it" in person.sees(plan)

    operator = console.person(ours, "operator")
    typed = {"confirmation": spec.name}
    assert code_of(operator.post(f"/api/plans/{plan.pk}/deploy", json=typed)) == "gate_closed"
    Person(ours.admin).approves(plan)
    assert code_of(operator.post(f"/api/plans/{plan.pk}/deploy")) == "confirmation_mismatch"
    answer = operator.post(f"/api/plans/{plan.pk}/deploy", json=typed)
    assert (answer.status_code, answer.json()["type"]) == (202, "DESTROY")

    runner = console.new_runner(ours, "destroyer")
    claim = runner.take_and_start()
    assert claim.plan is not None
    assert claim.plan.plan_id == str(plan.pk)
    assert fresh_plan(plan).spent_by_id == fresh(spec.jobs.get(type=JobType.DESTROY)).pk
    runner.succeed(claim, result={"summary": {"destroy": 1}})
    spec.refresh_from_db()
    assert spec.destroyed_at is not None


def test_protecting_a_spec_stops_a_destroy_that_waits_in_the_queue(console: Console, ours: Tenant) -> None:
    request_destroy(spec=ours.spec, confirmation=ours.spec.name, requested_by=ours.operator)
    protect(ours.spec)
    runner = console.new_runner(ours)
    answer = runner.start(runner.take())
    assert (answer.status_code, code_of(answer)) == (409, "gate_closed")


def test_a_destroy_plan_never_passes_for_a_plan_to_apply(console: Console, ours: Tenant) -> None:
    """Its hash is another one, so a DEPLOY's snapshot cannot be mistaken for it."""
    plan = a_destroy_plan(console, ours, ours.spec, "terraform_data.network")
    job = ours.request()
    assert plan.snapshot_hash != job.snapshot_hash
    assert console.person(ours, "viewer").get(f"/api/plans/{plan.pk}").json()["destroy"] is True
