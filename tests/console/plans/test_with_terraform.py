"""Retries, destroys and applies with a real console, a real runner and real Terraform."""

from __future__ import annotations

import signal
from pathlib import Path

from console.jobs.models import Job
from console.jobs.services import request_plan, retry_job
from console.plans.graph import graph_of_state
from console.plans.models import Plan
from console.plans.pictures import picture_of
from console.plans.services import approve_plan, request_deploy
from console.state.abandoned import queue_refresh_only_plan
from runner.protocol import JobType
from specs.models import Spec
from tests.chaos.runner.conftest import StartRunner
from tests.console.plans.review import Person, fresh_plan, protect
from tests.page_source import source_of
from tests.people import Tenant, fresh
from tests.runner.installation import messages, new_project, revise, wait_for_end
from tests.sample_cloud.mirror import servers
from tests.sample_cloud.service import Cloud
from tests.waiting import wait_until


def test_a_deploy_that_failed_part_way_is_retried_and_goes_on_with_what_was_reviewed(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud
) -> None:
    cloud.failures["second"] = 1
    start_runner()
    project = new_project(ours, servers(cloud.url, "first", "second", "third", chained=True))
    failed = wait_for_end(project.deploy())
    assert (failed.status, project.resources()) == ("FAILED", ["first"])

    again = wait_for_end(retry_job(job=failed, requested_by=ours.operator))
    assert again.status == "SUCCESS", messages(again)
    assert again.result is not None
    assert again.result["retry"] == {"decision": "went_on", "plan_number": 1, "beyond": []}
    assert project.resources() == ["first", "second", "third"]
    assert cloud.names() == ["first", "second", "third"]
    assert not Plan.objects.filter(job=again).exists()
    assert "so it continued automatically" in Person(ours.operator).reads_job(again)


def test_a_deploy_that_was_lost_part_way_is_retried_by_another_runner(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud
) -> None:
    cloud.latency["second"] = 2
    project = new_project(ours, servers(cloud.url, "first", "second", "third", chained=True))
    killed = start_runner()
    job = project.deploy()
    cloud.wait_for("create", "second")
    killed.signal(signal.SIGKILL)
    lost = wait_for_end(job)
    assert (lost.status, lost.error_code) == ("FAILED", "runner_lost")

    start_runner(name="next")
    # The console looks at what an interrupted apply left, as soon as it has noted the loss.
    looks = Job.objects.filter(spec=project.spec, type="PLAN", pk__gt=lost.pk)
    wait_until(looks.exists, seconds=40, what="a look at what is left")
    wait_for_end(looks.get())
    again = wait_for_end(retry_job(job=lost, requested_by=ours.operator))
    assert again.status == "SUCCESS", messages(again)
    assert again.result is not None
    assert again.result["retry"]["decision"] == "went_on"
    assert project.resources() == ["first", "second", "third"]
    assert cloud.done("create") == ["first", "second", "third"]


def test_a_look_at_what_an_interrupted_apply_left_shows_what_changed_outside(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud
) -> None:
    start_runner()
    project = new_project(ours, servers(cloud.url, "first", "second", "third"))
    deployed = wait_for_end(project.deploy())
    assert deployed.status == "SUCCESS", messages(deployed)
    person = Person(ours.viewer)
    assert "not checked since the last apply" in person.reads("spec", fresh_spec(project.spec))
    cloud.drift("first", size=64)
    cloud.lose("second")
    look = queue_refresh_only_plan(deployed)
    assert look is not None
    assert wait_for_end(look).status == "SUCCESS", messages(look)
    plan = fresh_plan(Plan.objects.get(job=look))
    assert plan.speculative
    assert sum(plan.summary.values()) == 0
    assert [(change["address"], change["action"]) for change in plan.drift] == [
        ("suite_server.first", "update"),
        ("suite_server.second", "delete"),
    ]
    page = person.sees(plan)
    assert "2 resources were changed or removed outside of Terraform" in page
    assert "suite_server.first" in page
    assert "<strong>No changes</strong>" not in page
    assert "2 resources changed outside of Terraform" in person.reads_job(fresh(look))
    assert "2 resources changed outside</a>" in person.reads("spec", fresh_spec(project.spec))
    refused = Person(ours.operator).applies(plan)
    assert "speculative and cannot be applied" in source_of(refused)


def fresh_spec(spec: Spec) -> Spec:
    return Spec.objects.select_related("organization").get(pk=spec.pk)


def test_a_retry_that_would_do_more_than_was_reviewed_ends_as_a_plan(
    start_runner: StartRunner, ours: Tenant, tmp_path: Path
) -> None:
    """A creation that ended half-way is tainted: to go on, Terraform would destroy what nobody has seen."""
    mended = tmp_path / "mended"
    files = {
        "main.tf": f"""
            resource "terraform_data" "first" {{}}
            resource "terraform_data" "half" {{
              depends_on = [terraform_data.first]
              provisioner "local-exec" {{ command = "test -e {mended}" }}
            }}
        """
    }
    start_runner()
    project = new_project(ours, files)
    failed = wait_for_end(project.deploy())
    assert (failed.status, project.resources()) == ("FAILED", ["first", "half (tainted)"])
    serial = project.state()["serial"]

    again = wait_for_end(retry_job(job=failed, requested_by=ours.operator))
    assert (again.status, again.error_code) == ("FAILED", "review_needed"), messages(again)
    assert "replace terraform_data.half" in again.error_message
    assert project.state()["serial"] == serial
    plan = fresh_plan(Plan.objects.get(job=again))
    assert [(change["action"], change["reason"]) for change in plan.changes] == [
        ("replace", "it is tainted: its creation did not finish")
    ]
    person = Person(ours.operator)
    assert f"Review plan #{plan.number}" in person.reads_job(again)
    assert "go beyond plan #1" in person.sees(plan)

    mended.touch()
    reviewed = request_deploy(plan=plan, requested_by=ours.operator, confirmation=project.spec.name)
    assert wait_for_end(reviewed).status == "SUCCESS", messages(reviewed)
    assert project.resources() == ["first", "half"]


def test_a_protected_spec_is_destroyed_by_exactly_the_plan_that_was_approved(
    start_runner: StartRunner, ours: Tenant
) -> None:
    start_runner()
    project = new_project(ours, {"main.tf": 'resource "terraform_data" "one" { count = 2 }'})
    assert wait_for_end(project.deploy()).status == "SUCCESS"
    protect(project.spec)
    job = request_plan(spec=project.spec, requested_by=ours.operator, destroy=True)
    assert wait_for_end(job).status == "SUCCESS", messages(job)
    plan = fresh_plan(Plan.objects.get(job=job))
    assert (plan.destroy, plan.summary["destroy"]) == (True, 2)
    assert "2 resources" in Person(ours.admin).sees(plan)
    approve_plan(plan=plan, approved_by=ours.admin)
    destroy = request_deploy(plan=plan, requested_by=ours.operator, confirmation=project.spec.name)
    assert destroy.type == JobType.DESTROY
    assert wait_for_end(destroy).status == "SUCCESS", messages(destroy)
    assert project.resources() == []
    assert any("Fetching the reviewed plan" in line for line in messages(destroy))
    project.spec.refresh_from_db()
    assert project.spec.destroyed_at is not None


def test_a_plan_is_applied_by_itself_and_a_look_at_another_revision_is_not(
    start_runner: StartRunner, ours: Tenant
) -> None:
    start_runner()
    project = new_project(ours, {"main.tf": 'resource "terraform_data" "one" {}'})
    project.spec.auto_apply = True
    project.spec.save(update_fields=["auto_apply"])
    plan = project.plan()
    deploy = project.spec.jobs.get(type=JobType.DEPLOY)
    assert wait_for_end(deploy).status == "SUCCESS", messages(deploy)
    assert fresh_plan(plan).spent_by_id == deploy.pk

    revise(project, {"main.tf": 'resource "terraform_data" "two" {}'})
    look = request_plan(spec=project.spec, requested_by=ours.operator, revision=1)
    assert wait_for_end(look).status == "SUCCESS"
    assert Plan.objects.get(job=look).summary == dict.fromkeys(plan.summary, 0)
    assert project.spec.jobs.filter(type=JobType.DEPLOY).count() == 1


def test_a_deploy_whose_plan_went_stale_in_the_queue_fails_before_terraform_starts(
    start_runner: StartRunner, ours: Tenant
) -> None:
    project = new_project(ours, {"main.tf": 'resource "terraform_data" "one" {}'})
    runner = start_runner()
    plan = project.plan()
    runner.end()
    job = project.deploy(plan)
    revise(project, {"main.tf": 'resource "terraform_data" "two" {}'})
    start_runner(name="next")
    wait_until(lambda: fresh(job).is_final, seconds=40, what="the end of the deploy")
    ended = Job.objects.get(pk=job.pk)
    assert (ended.status, ended.error_code) == ("FAILED", "plan_stale")
    assert 'file "main.tf" changed since' in ended.error_message
    assert fresh_plan(plan).spent_by is None
    assert project.resources() == []


LOCALS = {
    "main.tf": """
        locals {
          names = toset(["a", "b"])
          first = terraform_data.network.id
          addresses = { for name, one in module.zone : name => one.address }
        }
        resource "terraform_data" "network" {}
        resource "terraform_data" "alone" { input = "terraform_data.network" }
        module "zone" {
          source   = "./zone"
          for_each = local.names
          network  = local.first
        }
        resource "terraform_data" "dns" { input = values(local.addresses) }
        resource "terraform_data" "note" { input = module.zone["a"].address }
    """,
    "zone/main.tf": """
        variable "network" {}
        locals {
          given = "${var.network}/zone"
          made  = try(terraform_data.server.id, "")
        }
        resource "terraform_data" "server" { input = local.given }
        resource "terraform_data" "unused" { input = local.made }
        output "address" { value = local.made }
    """,
}


def test_the_graph_of_a_plan_has_the_lines_that_terraform_itself_goes_by(
    start_runner: StartRunner, ours: Tenant
) -> None:
    """Through local values, modules and splats: Terraform writes into the state what waited for what."""
    start_runner()
    project = new_project(ours, LOCALS)
    plan = project.plan()
    drawn = picture_of(plan)
    assert drawn is not None
    deployed = wait_for_end(project.deploy(plan))
    assert deployed.status == "SUCCESS", messages(deployed)
    assert {box["key"]: sorted(box["needs"]) for box in drawn["boxes"]} == {
        box.key: sorted(box.needs) for box in graph_of_state(project.state()).boxes
    }
    assert [box["needs"] for box in drawn["boxes"] if box["key"] == "terraform_data.dns"] == [
        ['module.zone["a"].terraform_data.unused', 'module.zone["b"].terraform_data.unused']
    ]
