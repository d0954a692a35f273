"""Resources of a real provider: failures, drift, and what a person reads about them."""

from __future__ import annotations

from django.test import Client

from console.jobs.models import Job
from console.jobs.services import cancel_job
from console.plans.models import PlanFile
from console.vault import seal
from tests.chaos.runner.conftest import StartRunner
from tests.people import Tenant
from tests.runner.installation import Project, messages, new_project, revise, wait_for_end
from tests.sample_cloud.mirror import servers
from tests.sample_cloud.service import Cloud


def deployed(project: Project) -> Job:
    job = wait_for_end(project.deploy())
    assert job.status == "SUCCESS", messages(job)
    return job


def summary(job: Job) -> dict[str, int]:
    assert job.result is not None
    return {kind: count for kind, count in job.result["summary"].items() if count}


def test_what_the_cloud_refused_is_told_and_made_by_the_next_deploy_without_making_anything_twice(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud, each_terraform: str
) -> None:
    cloud.failures["second"] = 1
    project = new_project(ours, servers(cloud.url, "first", "second", chained=True))
    start_runner(SLIPWAY_TERRAFORM=each_terraform)
    failed = wait_for_end(project.deploy())
    assert (failed.status, failed.error_code) == ("FAILED", "terraform_failed")
    assert failed.error_message == "The cloud refused server second at main.tf:15"
    assert project.resources() == ["first"]
    deployed(project)
    assert cloud.done("create") == ["first", "second"]


def test_drift_and_loss_are_planned_back_and_everything_can_be_destroyed(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud
) -> None:
    project = new_project(ours, servers(cloud.url, "drifting", "lost", "steady", size="1"))
    start_runner()
    assert summary(deployed(project)) == {"add": 3}
    cloud.drift("drifting", size=7)
    cloud.lose("lost")
    plan = project.plan()
    assert summary(plan.job) == {"add": 1, "change": 1}
    assert wait_for_end(project.deploy(plan)).status == "SUCCESS"
    assert sorted(cloud.names()) == ["drifting", "lost", "steady"]
    assert wait_for_end(project.destroy()).status == "SUCCESS"
    assert cloud.names() == []
    assert project.resources() == []


def test_a_plan_file_that_is_not_the_reviewed_one_is_refused_before_anything_changes(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud
) -> None:
    project = new_project(ours, servers(cloud.url, "reviewed"))
    start_runner()
    plan = project.plan()
    files = PlanFile.objects.get(plan=plan)
    files.sealed_file = seal(b"another plan", context=f"plan-file:{plan.pk}")
    files.save(update_fields=["sealed_file"])
    job = wait_for_end(project.deploy(plan))
    assert (job.status, job.error_code) == ("FAILED", "plan_stale")
    assert "not the one that was reviewed" in job.error_message
    assert not cloud.journal


def test_a_cancel_that_terraform_ignores_ends_within_the_grace_period(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud
) -> None:
    """Terraform waits for its provider, which waits for the cloud, which takes a minute."""
    cloud.latency["endless"] = 60
    project = new_project(ours, servers(cloud.url, "quick", "endless", chained=True))
    runner = start_runner(SLIPWAY_RUNNER_STOP_GRACE="4")
    job = project.deploy()
    cloud.wait_for("create", "endless")
    cancel_job(job=job, requested_by=ours.operator)
    ended = wait_for_end(job, seconds=40)
    assert (ended.status, ended.error_code) == ("CANCELLED", "cancelled")
    assert not runner.living()
    assert project.resources() == ["quick"]


def test_bad_configuration_is_told_with_file_and_line_and_without_a_traceback(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud
) -> None:
    project = new_project(ours, servers(cloud.url, "a"))
    revise(
        project, {"main.tf": 'locals {\n  a = 1\n}\nresource "terraform_data" "x" {\n  input = var.nope\n}\n'}
    )
    start_runner()
    job = wait_for_end(ours.request(spec=project.spec))
    assert job.error_message == "Reference to undeclared input variable at main.tf:5"
    browser = Client()
    browser.force_login(ours.viewer, backend="django.contrib.auth.backends.ModelBackend")
    page = browser.get(f"/{ours.organization.slug}/jobs/{job.number}/").content.decode()
    assert "main.tf:5" in page
    assert "Traceback" not in page + "\n".join(messages(job))
