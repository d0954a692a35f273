"""Connecting an account as a person does it, in a real browser, to the pickers that come of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from console.identities.models import CloudIdentity
from specs.models import Spec
from tests.console.identities.test_connection_tests import FAILED, PASSED
from tests.console.identities.test_resources import send, subnets
from tests.console_app import Console, RunnerClient
from tests.journeys.browser import NARROW, WIDE, Witness, running_browser
from tests.people import Tenant

#: The figure is for a busy machine.
PATIENCE_MS = 30_000
PASSWORD = "a password of this test only"


def picture(page: Page, name: str) -> None:
    """Kept only where somebody asks for it."""
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=Path(folder) / f"identity-{name}.png", full_page=True)


def report_test(runner: RunnerClient, ending: str, **report: Any) -> None:
    claim = runner.claim(types=["CONNECTION_TEST"], wait=10)
    assert claim is not None
    runner.start(claim)
    assert runner.report(claim, ending, **report).status_code == 200


def report_fetch(runner: RunnerClient) -> None:
    claim = runner.claim(types=["FETCH_RESOURCES"], wait=10)
    assert claim is not None
    runner.start(claim)
    zones = [{"id": "Z0123456789", "name": "harbour.example", "private": False}]
    send(runner, claim, zones, kind="hosted_zone", region="global")
    regions = [{"id": "eu-central-1", "name": "eu-central-1", "enabled": True}]
    send(runner, claim, regions, kind="region", region="global")
    send(runner, claim, subnets("quay-a", "quay-b"))
    send(runner, claim, [], kind="vpc", region="ap-east-1", error="The region is off for this account.")
    assert runner.succeed(claim).status_code == 200


@pytest.mark.timeout(180)
def test_connect_an_account_test_it_and_choose_from_what_is_in_it(
    served: str, console: Console, ours: Tenant
) -> None:
    ours.admin.set_password(PASSWORD)
    ours.admin.save()
    assert ours.spec.identity_id is None
    runner = console.new_runner(ours)
    expect.set_options(timeout=PATIENCE_MS)
    with running_browser() as browser:
        context = browser.new_context(viewport=WIDE)
        witness, page = Witness(context), context.new_page()
        page.goto(f"{served}/ours/identities/")
        page.get_by_label("Name").fill(ours.admin.username)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()

        # Step 1: which account. A mistake is shown at its field.
        expect(page.get_by_text("No cloud account connected")).to_be_visible()
        page.get_by_role("link", name="Connect an account").first.click()
        page.get_by_role("link", name="AWS").click()
        page.get_by_label("Name here").fill("Production <b>")
        page.get_by_label("Role ARN").fill("slipway")
        page.get_by_label("Region", exact=True).fill("eu-central-1")
        page.get_by_role("button", name="Continue to setup").click()
        expect(page.get_by_role("alert").filter(has_text="the ARN of a role")).to_be_visible()
        expect(page.get_by_label("Role ARN")).to_be_focused()
        witness.forgive("400")
        picture(page, "connect")
        page.get_by_label("Role ARN").fill("arn:aws:iam::123456789012:role/slipway")
        page.get_by_role("button", name="Continue to setup").click()

        # Step 2: what to run, filled in.
        expect(page.get_by_role("heading", name="Set up Production <b>")).to_be_visible()
        policy = page.get_by_role("region", name="Trust policy", exact=True)
        expect(policy).to_contain_text("sts:AssumeRoleWithWebIdentity")
        expect(policy).to_contain_text(f"{served.removeprefix('http://')}:sub")
        expect(page.get_by_role("region", name="AWS CLI", exact=True)).to_contain_text("--role-name slipway")
        expect(page.get_by_role("region", name="Terraform", exact=True)).to_contain_text(
            "aws_iam_openid_connect_provider"
        )
        expect(page.get_by_role("region", name="CloudFormation", exact=True)).to_contain_text(
            "AWS::IAM::OIDCProvider"
        )
        expect(page.get_by_text("The cloud cannot read")).to_be_visible()
        picture(page, "setup")

        # Step 3: a test that fails says what to do; one that passes fetches. All of it is pushed.
        page.get_by_role("button", name="Test the connection").click()
        expect(page.get_by_role("button", name="Testing…")).to_be_disabled()
        report_test(runner, "FAILED", result=FAILED, fatal=True, error_message="1 of 1 checks failed.")
        expect(page.get_by_text("Allow it.")).to_be_visible()
        page.get_by_role("button", name="Test the connection").click()
        expect(page.get_by_role("button", name="Testing…")).to_be_disabled()
        report_test(runner, "SUCCESS", result=PASSED)
        expect(page.get_by_text("as slipway")).to_be_visible()
        report_fetch(runner)
        expect(page.get_by_role("row", name="ap-east-1")).to_contain_text(
            "The region is off for this account."
        )
        expect(page.get_by_role("row", name="eu-central-1")).to_contain_text("2")
        picture(page, "page")
        page.get_by_role("row", name="eu-central-1").get_by_role("link", name="subnet").click()
        page.get_by_label("Find").fill("quay-b")
        page.get_by_label("Find").press("Enter")
        expect(page.get_by_text("subnet-quay-b")).to_be_visible()
        expect(page.get_by_text("subnet-quay-a")).to_have_count(0)

        # A Spec takes it, and the form of a blueprint offers what was found.
        page.goto(f"{served}/ours/specs/network/settings/")
        page.get_by_label("Cloud identity").select_option(label="Production <b> · AWS 123456789012")
        page.get_by_role("button", name="Save the settings").click()
        expect(page.get_by_text("Saved.")).to_be_visible()
        page.goto(f"{served}/ours/specs/new/?source=blueprint&name=aws-platform")
        page.get_by_label("Cloud identity").select_option(label="Production <b> · AWS 123456789012")
        region = page.get_by_label("Region", exact=True)
        region.focus()
        choices = page.locator("resource-picker", has=region).locator("option")
        expect(choices).to_have_attribute("value", "eu-central-1")
        picture(page, "new-spec")
        zone = page.locator("[name=var-parent_zone_id]")
        zone.focus()
        offered = page.locator("resource-picker", has=zone).locator("option")
        expect(offered).to_have_attribute("value", "Z0123456789")
        expect(offered).to_contain_text("harbour.example")
        zone.fill("nothing like it")
        expect(offered).to_have_count(0)
        assert zone.input_value() == "nothing like it", "it stays a field for free text"

        page.goto(f"{served}/ours/identities/")
        expect(page.get_by_role("row", name="Production <b>")).to_contain_text("passed")
        picture(page, "list")
        assert not witness.complaints
        context.close()
        if os.environ.get("PICTURES"):
            _other_looks(browser, served, ours)
    # Playwright keeps an event loop in this thread, and Django would not be asked beside it.
    assert Spec.objects.get(slug="network").identity_id == CloudIdentity.objects.get().pk


def _other_looks(browser: Any, served: str, ours: Tenant) -> None:
    for name, options in (
        ("dark", {"viewport": WIDE, "color_scheme": "dark"}),
        ("narrow", {"viewport": NARROW}),
    ):
        context = browser.new_context(**options)
        page = context.new_page()
        page.goto(f"{served}/ours/identities/production-b/")
        page.get_by_label("Name").fill(ours.admin.username)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("Connection test", exact=True)).to_be_visible()
        picture(page, name)
        context.close()
