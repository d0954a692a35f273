"""A blueprint's last step, from `blueprint.yaml` to the page: a phase of its own, and then a component."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from console.jobs.models import Job
from console.jobs.services import request_plan
from console.plans.services import request_deploy
from specs.document import blueprints
from specs.models import Component, OwnBlueprint, Spec
from tests.console_app import Console
from tests.git_host import Repository
from tests.journeys.browser import Witness, open_context, running_browser, session_of
from tests.people import Tenant
from tests.runner.installation import Installation, messages, wait_for_end
from tests.specs.editing import Browser, new_spec, refusal
from tests.specs.test_the_demo_through_every_source import installation, plan_of

__all__ = ["installation"]

PLATFORM = """
resource "terraform_data" "cluster" {}
resource "terraform_data" "argocd" {
  depends_on = [terraform_data.cluster]
  provisioner "local-exec" { command = "while [ ! -e GO ]; do sleep 0.05; done" }
}
output "cluster_endpoint" { value = "https://cluster.example" }
output "argocd_url" { value = "https://argocd.example" }
"""
META = """
title: Platform
components: {cluster: cluster_endpoint, argocd: argocd_url}
last_step: {phase: argocd, title: Installing Argo CD, addresses: [terraform_data.argocd]}
"""


def test_each_platform_that_comes_along_installs_argo_cd_as_its_last_step() -> None:
    platforms = [blueprint for blueprint in blueprints() if "argocd" in blueprint.components]
    assert {blueprint.name for blueprint in platforms} == {"aws-platform", "gcp-platform", "azure-platform"}
    for blueprint in platforms:
        assert "cluster" in blueprint.components
        assert blueprint.last_step is not None
        assert (blueprint.last_step["phase"], blueprint.last_step["addresses"]) == (
            "argocd",
            ["helm_release.argocd"],
        )
        assert any('resource "helm_release" "argocd"' in text for text in blueprint.files.values())


@pytest.mark.parametrize(
    ("last_step", "words"),
    [
        ("last_step: argocd", "last_step.phase"),
        ("last_step: {phase: apply, title: x, addresses: [a.b]}", "not already a phase of a job"),
        ("last_step: {phase: Argo CD, title: x, addresses: [a.b]}", "last_step.phase"),
        ("last_step: {phase: argocd, addresses: [a.b]}", "last_step.title"),
        ("last_step: {phase: argocd, title: x}", "last_step.addresses"),
        ("last_step: {phase: argocd, title: x, addresses: ['a b']}", "last_step.addresses"),
    ],
)
def test_a_last_step_that_is_none_is_refused(
    console: Console, ours: Tenant, repository: Repository, last_step: str, words: str
) -> None:
    repository.commit({"main.tf": PLATFORM, "blueprint.yaml": last_step})
    path = f"/api/organizations/{ours.organization.slug}/blueprints"
    answer = console.person(ours, "admin").post(path, json={"name": "platform", "url": repository.url})
    status, field, detail = refusal(answer)
    assert (status, field) == (400, "source.path")
    assert words in detail
    assert OwnBlueprint.objects.count() == 0


@pytest.mark.timeout(180)
def test_it_is_seen_on_the_page_while_it_runs_and_when_it_is_done(
    console: Console,
    ours: Tenant,
    repository: Repository,
    installation: Installation,
    start_runner: Callable[..., Any],
    tmp_path: Path,
) -> None:
    go = tmp_path / "go"
    repository.commit({"main.tf": PLATFORM.replace("GO", str(go)), "blueprint.yaml": META})
    path = f"/api/organizations/{ours.organization.slug}/blueprints"
    added = console.person(ours, "admin").post(path, json={"name": "platform", "url": repository.url})
    assert added.status_code == 201, added.text
    operator = console.person(ours, "operator")
    spec = new_spec(operator, ours, source={"kind": "blueprint", "name": "platform"})
    start_runner()
    job = deploy_job(ours, spec)
    page = installation.url + reverse("job", args=[ours.organization.slug, job.number])
    session = session_of(ours.operator, installation.url)
    with running_browser() as browser:
        context = open_context(browser, session)
        tab, witness = context.new_page(), Witness(context)
        tab.goto(page)
        expect(phase(tab, "argocd")).to_have_class("phase is-running", timeout=60_000)
        expect(phase(tab, "apply")).to_have_class("phase is-running")
        go.touch()
        expect(phase(tab, "argocd")).to_have_class("phase is-done", timeout=60_000)
        expect(phase(tab, "success")).to_be_visible(timeout=60_000)
        expect(phase(tab, "argocd").locator(".took")).to_contain_text("s")
        assert witness.complaints == []
    assert wait_for_end(job).status == "SUCCESS", messages(job)
    assert Component.objects.get(spec=spec, kind="argocd").value == "https://argocd.example"
    assert "https://argocd.example" in Browser(ours, ours.viewer).reads("specs/shop/")


def deploy_job(tenant: Tenant, spec: Spec) -> Job:
    planned = wait_for_end(request_plan(spec=spec, requested_by=tenant.operator))
    assert planned.status == "SUCCESS", messages(planned)
    return request_deploy(plan=plan_of(planned), requested_by=tenant.operator)


def phase(tab: Page, name: str) -> Any:
    return tab.locator("phase-timeline li", has=tab.locator(f".name:text-is('{name}')"))
