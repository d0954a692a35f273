"""The README's tour, done by a person with a browser: from `slipway up` to a destroyed demo."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.journeys.browser import WIDE, Witness, running_browser, sign_in
from tests.journeys.product import running_product
from tests.waiting import wait_until

#: A plan takes a second, an apply about twelve; a busy machine needs several times that.
PLAN_MS = 60_000
APPLY_MS = 120_000


@pytest.mark.timeout(300)
def test_the_tour_from_the_first_command_to_a_destroyed_demo(reachable_tmp_path: Path) -> None:
    with running_product(reachable_tmp_path) as product:
        with running_browser() as browser:
            context = browser.new_context(viewport=WIDE)
            witness, page = Witness(context), context.new_page()
            sign_in(page, product.url, product.password)
            opens_the_demo_that_is_already_there(page)
            plans_it_and_reads_the_plan(page)
            applies_exactly_what_was_read(page)
            watches_resources_being_created(page)
            sees_the_outputs(page)
            is_refused_a_destroy_with_the_wrong_name(page)
            witness.forgive("400 (Bad Request)")
            destroys_with_the_right_name_and_watches_it_go(page)
            assert witness.complaints == []
        assert product.press_ctrl_c() == 0
        assert "Stopped." in product.printed


def opens_the_demo_that_is_already_there(page: Page) -> None:
    page.get_by_role("link", name="demo", exact=True).click()
    expect(page.get_by_role("heading", name="demo", exact=True)).to_be_visible()
    expect(page.get_by_text("Never planned")).to_be_visible()
    expect(page.get_by_text("live", exact=True)).to_be_visible()


def plans_it_and_reads_the_plan(page: Page) -> None:
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.get_by_role("heading", name="Plan #1 of demo")).to_be_visible()
    expect(status_of(page)).to_have_text("SUCCESS", timeout=PLAN_MS)
    expect(log_of(page)).to_contain_text("terraform_data.network: Plan to create")
    # Asked for while the plan was being made, when there was no picture yet.
    expect(page.locator("resource-graph svg")).to_be_visible()
    page.get_by_role("link", name="Review plan #1").click()
    expect(page.get_by_text(re.compile(r"^\s*\d+ resources will be added\.\s*$"))).to_be_visible()
    page.get_by_text('terraform_data.dns_record["www"]').click()
    expect(page.locator(".change[open]").get_by_role("row", name="id (known after apply)")).to_be_visible()


def applies_exactly_what_was_read(page: Page) -> None:
    apply = page.get_by_role("button", name=re.compile(r"^Apply \d+ changes$"))
    expect(apply).to_be_visible()
    apply.click()
    expect(page.get_by_role("heading", name="Apply #2 of demo")).to_be_visible()


def watches_resources_being_created(page: Page) -> None:
    expect(page.locator(".resource.is-running").first).to_contain_text("creating…", timeout=PLAN_MS)
    first = lines_of(page)
    wait_until(lambda: lines_while_it_runs(page) > first, seconds=30, what="more lines while the job runs")
    expect(status_of(page)).to_have_text("SUCCESS", timeout=APPLY_MS)
    progress = page.locator("resource-progress [data-words]")
    expect(progress).to_have_text(re.compile(r"^(\d+) of \1$"))
    total = progress.inner_text().split()[-1]
    expect(page.locator(".resource.is-done")).to_have_count(int(total))
    expect(log_of(page)).to_contain_text("Apply complete!")
    expect(page.get_by_text("✓ complete")).to_be_visible()


def sees_the_outputs(page: Page) -> None:
    outputs = page.locator("#job-result")
    expect(outputs).to_contain_text("dashboard_url")
    expect(outputs).to_contain_text("https://dashboard.harbour.example")
    expect(outputs).to_contain_text("(sensitive)")


def is_refused_a_destroy_with_the_wrong_name(page: Page) -> None:
    page.get_by_role("navigation", name="Breadcrumbs").get_by_role("link", name="demo").click()
    expect(page.get_by_text("Deployed", exact=True)).to_be_visible()
    page.get_by_role("button", name="Destroy…").click()
    page.get_by_label("Type demo to confirm").fill("Demo")
    page.get_by_role("button", name=re.compile("^Destroy [0-9]+ resources$")).click()
    expect(page.get_by_role("alert").filter(has_text="Nothing was changed")).to_be_visible()


def destroys_with_the_right_name_and_watches_it_go(page: Page) -> None:
    page.get_by_label("Type demo to confirm").fill("demo")
    page.get_by_label("Type demo to confirm").press("Enter")
    expect(page.get_by_role("heading", name="Destroy #3 of demo")).to_be_visible()
    expect(page.locator(".resource.is-running").first).to_contain_text("destroying…", timeout=PLAN_MS)
    expect(status_of(page)).to_have_text("SUCCESS", timeout=APPLY_MS)
    page.get_by_role("navigation", name="Breadcrumbs").get_by_role("link", name="demo").click()
    expect(page.get_by_text("Destroyed", exact=True)).to_be_visible()
    expect(page.get_by_text("https://dashboard.harbour.example")).to_have_count(0)


def status_of(page: Page) -> Locator:
    return page.locator("#job-header .status.large")


def log_of(page: Page) -> Locator:
    return page.get_by_role("region", name="Log lines")


def lines_while_it_runs(page: Page) -> Any:
    """Lines and status of the same moment."""
    return page.evaluate(
        r"""() => {
          const bodies = [...document.querySelectorAll(".log-body")].map((one) => one.textContent).join("");
          const runs = document.getElementById("job-header").dataset.status === "PROCESSING";
          return runs ? bodies.split("\n").length - 1 : 0;
        }"""
    )


def lines_of(page: Page) -> int:
    return sum(len(text.splitlines()) for text in log_of(page).locator(".log-body").all_text_contents())
