"""An organization begins to work: first steps, a second runner, a second person, search, keys, an end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.journeys.browser import WIDE, Witness
from tests.journeys.product import Product
from tests.waiting import wait_until

PLAN_MS = 60_000
START_MS = 60_000

pytestmark = pytest.mark.timeout(240)


def test_the_first_steps_tick_by_themselves(context: BrowserContext, page: Page, product: Product) -> None:
    witness, board = Witness(context), context.new_page()
    board.goto(product.url)
    expect(board.get_by_text("Next: connect a cloud or skip this step.")).to_be_visible(timeout=START_MS)
    page.goto(product.url)
    page.get_by_role("link", name="Open the guide").click()
    ticks = page.locator(".steps .is-success")
    expect(ticks).to_have_count(2, timeout=START_MS)
    page.get_by_role("button", name="Skip for now").click()
    expect(ticks).to_have_count(3)
    watching = context.new_page()
    watching.goto(page.url)
    expect(watching.get_by_text("live", exact=True)).to_be_visible()
    page.get_by_role("button", name="Plan demo").click()
    expect(watching.get_by_text("All done")).to_be_visible(timeout=PLAN_MS)
    # The dashboard has been open all along.
    waiting = board.get_by_role("region", name="Waiting for you")
    expect(waiting.get_by_role("link", name="Review and apply")).to_be_visible(timeout=PLAN_MS)
    expect(board.get_by_text("Next: ")).to_have_count(0)
    waiting.get_by_role("link", name="Review and apply").click()
    expect(board.get_by_role("heading", name=re.compile("^Plan #1 of demo"))).to_be_visible()
    assert witness.complaints == []


def test_what_runs_is_on_the_dashboard_and_moves(
    context: BrowserContext, page: Page, product: Product
) -> None:
    board = context.new_page()
    board.goto(f"{product.url}/demo/")
    expect(board.get_by_text("Nothing is running.")).to_be_visible()
    page.goto(f"{product.url}/demo/specs/demo/plans/1/")
    page.get_by_role("button", name=re.compile("^Apply")).click()
    running = board.get_by_role("region", name="Running now")
    expect(running.get_by_role("link", name="Apply #2")).to_be_visible(timeout=PLAN_MS)
    expect(running.locator(".figure")).to_have_text(re.compile(r"^[1-9]\d*\s+of\s+30$"), timeout=PLAN_MS)
    expect(board.get_by_text("Nothing is running.")).to_be_visible(timeout=PLAN_MS)
    outcomes = board.get_by_role("region", name="Job outcomes (24 h)")
    expect(outcomes.get_by_role("row", name=re.compile("^Apply"))).to_contain_text("100 % of 1")


def test_keys_lead_everywhere(context: BrowserContext, page: Page, product: Product) -> None:
    witness = Witness(context)
    page.goto(product.url)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    for letter, heading in (("s", "Specs"), ("j", "Jobs"), ("r", "Runners"), ("d", "Dashboard")):
        goes(page, letter, heading)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_label("Search Specs and jobs")).to_be_focused()
    page.keyboard.type("dem")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Search for “dem”")).to_be_visible()
    page.locator("h1").click()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="demo", exact=True)).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_role("heading", name=re.compile("^Plan #1"))).to_be_visible()
    assert witness.complaints == []


def goes(page: Page, letter: str, heading: str) -> None:
    """The keys belong together for a second and a half: where the machine stalls, they are pressed again."""
    arrived = page.get_by_role("heading", name=heading, exact=True)

    def press() -> bool:
        page.keyboard.press("g")
        page.keyboard.press(letter)
        with suppress(PlaywrightTimeout):
            arrived.wait_for(timeout=3_000)
        return arrived.is_visible()

    wait_until(press, seconds=30, what=f"the page {heading}")


@contextmanager
def a_runner(folder: Path, command: str) -> Iterator[None]:
    """Started by the page's own words, in a folder where what they install is there already."""
    program = folder / "slipway-runner" / "bin" / "slipway-runner"
    program.parent.mkdir(parents=True)
    program.symlink_to(Path(sys.executable).with_name("slipway-runner"))
    install, _, start = command.partition("export ")
    assert "pip install" in install
    own = {"SLIPWAY_RUNNER_DATA_DIR": str(folder / "data"), "SLIPWAY_RUNNER_NAME": "second"}
    words = f"export {start.replace('slipway-runner/bin', 'exec slipway-runner/bin')}"
    with (folder / "runner.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", words], cwd=folder, env=os.environ | own, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def test_a_second_runner_arrives_while_the_page_waits_and_leaves_before_its_eyes(
    page: Page, product: Product, tmp_path: Path
) -> None:
    page.goto(f"{product.url}/demo/runners/")
    page.get_by_role("link", name="Add a runner").click()
    page.get_by_label("Or a new pool").fill("eu-west")
    page.get_by_role("button", name="Create registration token").click()
    command = page.locator("[data-way=shell] pre").inner_text()
    page.get_by_text("systemd", exact=True).click()
    expect(page.locator("[data-way=systemd] pre")).to_contain_text("ExecStart=")
    expect(page.locator("[data-way=shell]")).to_be_hidden()
    ticks = page.locator("#arrival .is-success")
    expect(ticks).to_have_count(0)
    token = re.search(r"slt_\S+", command)
    assert token
    with a_runner(tmp_path, command):
        expect(ticks).to_have_count(3, timeout=START_MS)
        expect(page.get_by_text("As second.")).to_be_visible()
        page.reload()
        assert token.group() not in page.content()
        page.goto(f"{product.url}/demo/runners/")
        second = page.locator("tr", has=page.get_by_text("second", exact=True))
        expect(second).to_contain_text("ONLINE")
    # It said goodbye, and the page, which was not loaded again, knows; silence alone would not say "stopped".
    expect(second).to_contain_text("OFFLINE stopped", timeout=START_MS)


def test_an_invited_viewer_reads_and_can_do_nothing(
    browser: Browser, context: BrowserContext, page: Page, product: Product
) -> None:
    page.goto(f"{product.url}/demo/settings/members/")
    page.get_by_label("Name or note").fill("the auditor")
    page.get_by_role("button", name="Create invite link").click()
    link = page.locator("#invitation-made code").inner_text()
    guest = browser.new_context(viewport=WIDE)
    other = guest.new_page()
    other.goto(link)
    other.get_by_label("Name").fill("auditor")
    other.get_by_label("Password").fill("a long pass phrase")
    other.get_by_role("button", name="Create account and join").click()
    expect(other.get_by_role("heading", name="Dashboard")).to_be_visible()
    expect(other.get_by_role("link", name="Audit", exact=True)).to_have_count(0)
    expect(other.get_by_role("link", name="New Spec")).to_have_count(0)
    other.goto(f"{product.url}/demo/specs/demo/")
    expect(other.get_by_role("button", name="Plan", exact=True)).to_have_count(0)
    page.reload()
    page.get_by_label("Role of auditor").select_option("operator")
    with page.expect_response(re.compile("/role$")) as response:
        page.get_by_role("row", name=re.compile("^auditor")).get_by_role("button", name="Change").click()
    assert response.value.ok
    other.reload()
    expect(other.get_by_role("button", name="Plan", exact=True)).to_be_visible()
    page.get_by_label("Role of admin").select_option("viewer")
    page.get_by_role("row", name=re.compile("^admin")).get_by_role("button", name="Change").click()
    expect(page.get_by_role("alert").filter(has_text="the only admin of Demo")).to_be_visible()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove auditor").click()
    expect(page.get_by_role("row", name=re.compile("^auditor"))).to_have_count(0)
    answer = other.reload()
    assert answer is not None
    assert answer.status == 404
    guest.close()


def test_a_token_is_made_shown_once_and_revoked(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/demo/settings/tokens/")
    expect(page.get_by_text("No tokens yet.")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("laptop")
    page.get_by_role("button", name="Create token").click()
    text = page.locator("#token-made code").inner_text()
    answer = page.request.get(
        f"{product.url}/api/specs?organization=demo", headers={"Authorization": f"Bearer {text}"}
    )
    assert answer.status == 200
    page.reload()
    assert text not in page.content()
    page.get_by_role("button", name="Revoke laptop").click()
    expect(page.get_by_text("No tokens yet.")).to_be_visible()


def test_the_audit_page_tells_what_was_done_and_is_exported(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/demo/audit/")
    page.get_by_label("What").fill("job.requested")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as CSV").click()
    assert download.value.path().read_text().count("job.requested") == 2
    page.get_by_label("What").fill("nothing.like.that")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("No events match these filters")).to_be_visible()


def test_a_spec_is_deleted_once_nothing_is_left_of_it(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/demo/specs/demo/settings/")
    page.get_by_role("button", name="Delete…").click()
    expect(page.get_by_role("dialog")).to_contain_text("still has resources")
    page.goto(f"{product.url}/demo/specs/new/?source=inline")
    page.get_by_label("Name", exact=True).fill("Short lived")
    page.get_by_role("button", name="Create only").click()
    page.get_by_role("navigation", name="Short lived").get_by_role("link", name="Settings").click()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_label("Type Short lived to confirm").fill("short lived")
    page.get_by_role("button", name="Delete Spec").click()
    expect(page.get_by_role("alert").filter(has_text="Nothing was changed")).to_be_visible()
    page.get_by_label("Type Short lived to confirm").fill("Short lived")
    page.get_by_role("button", name="Delete Spec").click()
    expect(page.get_by_text("cannot be planned or applied")).to_be_visible()
    page.goto(f"{product.url}/demo/specs/")
    expect(page.get_by_role("link", name="Short lived")).to_have_count(0)
