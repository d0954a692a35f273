"""Two people review a dangerous plan in their browsers: one approves it, the other confirms and applies."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.chaos.runner.conftest import StartRunner
from tests.console.plans.review import address, protect
from tests.journeys.browser import Witness, open_context, running_browser, session_of
from tests.people import Tenant
from tests.runner.installation import Installation, Project, messages, new_project, revise, wait_for_end

JOB_MS = 60_000

THREE = {"main.tf": 'resource "terraform_data" "server" { count = 3 }'}
ONE = {"main.tf": 'resource "terraform_data" "server" { count = 1 }'}


@pytest.fixture
def project(start_runner: StartRunner, ours: Tenant) -> Project:
    """Three servers that run, in a Spec that is protected, and a revision that wants only one."""
    start_runner()
    project = new_project(ours, THREE, name="shop")
    deploy = project.deploy()
    assert wait_for_end(deploy).status == "SUCCESS", messages(deploy)
    revise(project, ONE)
    protect(project.spec)
    return project


@pytest.mark.timeout(180)
def test_a_dangerous_plan_is_approved_by_another_and_confirmed_by_name(
    installation: Installation, ours: Tenant, project: Project
) -> None:
    # The browser's loop is no place for the database: what is needed of it is fetched before.
    sessions = [session_of(person, installation.url) for person in (ours.operator, ours.admin)]
    spec_page = installation.url + address("spec", project.spec)
    may_approve = f"{ours.admin}, {ours.second_operator}"
    with running_browser() as browser:
        contexts = [open_context(browser, session) for session in sessions]
        witness, other_witness = (Witness(context) for context in contexts)
        requester, approver = (context.new_page() for context in contexts)
        requester.goto(spec_page)
        plans_and_finds_that_it_cannot_apply(requester)
        approver.goto(requester.url)
        approves(approver, may_approve)
        confirms_by_name(requester)
        witness.forgive("400 (Bad Request)")
        expect(requester.locator("#job-header")).to_have_attribute("data-status", "SUCCESS", timeout=JOB_MS)
        expect(approver.get_by_text("A plan can be applied only once.")).to_be_visible(timeout=JOB_MS)
        requester.goto(spec_page)
        is_sent_to_plan_the_destroy(requester)
        assert witness.complaints == []
        assert other_witness.complaints == []
    assert project.resources() == ["server"]


def plans_and_finds_that_it_cannot_apply(page: Page) -> None:
    page.get_by_role("button", name="Plan", exact=True).click()
    page.get_by_role("link", name="Review plan #2").click(timeout=JOB_MS)
    expect(page.get_by_text("2 resources will be DESTROYED.")).to_be_visible()
    expect(page.get_by_text("It destroys or replaces 2 of 3 resources")).to_be_visible()
    expect(page.get_by_text("Waiting for approval")).to_be_visible()
    expect(page.get_by_text("You requested this plan, so someone else has to approve it.")).to_be_visible()
    expect(page.get_by_role("button", name="Approve this plan")).to_be_hidden()
    expect(page.get_by_role("button", name="Apply")).to_be_hidden()


def approves(page: Page, may_approve: str) -> None:
    expect(page.get_by_text(f"Can approve: {may_approve}.")).to_be_visible()
    page.get_by_role("button", name="Approve this plan").click()
    expect(page.get_by_text("1 of 1")).to_be_visible()
    expect(page.get_by_role("button", name="Withdraw")).to_be_visible()


def confirms_by_name(page: Page) -> None:
    """The page has heard of the approval by itself."""
    page.get_by_role("button", name="Apply 2 changes…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("terraform_data.server[2]")
    dialog.get_by_label("Type shop to confirm").fill("Shop")
    dialog.get_by_label("Type shop to confirm").press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("Nothing was changed; type 'shop' to confirm.")
    dialog.get_by_label("Type shop to confirm").fill("shop")
    dialog.get_by_role("button", name="Apply 2 changes").click()
    expect(page.get_by_role("heading", name="Apply #4 of shop")).to_be_visible()


def is_sent_to_plan_the_destroy(page: Page) -> None:
    page.get_by_role("button", name="Destroy…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("terraform_data.server[0]")
    expect(dialog).to_contain_text("shop is protected.")
    dialog.get_by_role("button", name="Plan destroy").click()
    page.get_by_role("link", name="Review plan #3").click(timeout=JOB_MS)
    expect(page.get_by_role("heading", name="Plan #3 of shop, to destroy it")).to_be_visible()
    expect(page.get_by_text("It destroys everything that shop created: 1 resource.")).to_be_visible()
