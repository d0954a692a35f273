"""Takes the README's pictures from the real product: `make screenshots`."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, expect

from tests.journeys.browser import running_browser, sign_in
from tests.journeys.product import running_product
from tests.throwaway_postgres import reachable_directory

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SIZE = ViewportSize(width=1280, height=800)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    folder = reachable_directory("slipway-pictures-")
    try:
        with running_product(folder) as product, running_browser() as browser:
            page = browser.new_context(viewport=SIZE, color_scheme="light").new_page()
            sign_in(page, product.url, product.password)
            picture_of_a_plan(page)
            picture_of_a_deploy_in_progress(page)
            picture_of_the_dashboard(page)
    finally:
        shutil.rmtree(folder)


def picture_of_a_plan(page: Page) -> None:
    page.get_by_role("link", name="demo", exact=True).click()
    page.get_by_role("button", name="Plan", exact=True).click()
    page.get_by_role("link", name="Review plan #1").click(timeout=60_000)
    page.locator(".change", has_text="terraform_data.cluster").locator("summary").click()
    expect(page.locator(".change[open]").first).to_be_visible()
    page.screenshot(path=IMAGES / "plan.png")


def picture_of_a_deploy_in_progress(page: Page) -> None:
    page.get_by_role("button", name=re.compile(r"^Apply \d+ changes$")).click()
    # Halfway: some are made, some are being made, some wait.
    expect(page.locator(".resource.is-done").nth(9)).to_be_visible(timeout=60_000)
    expect(page.locator(".resource.is-running").first).to_be_visible()
    page.screenshot(path=IMAGES / "job.png")


def picture_of_the_dashboard(page: Page) -> None:
    """The deploy goes on meanwhile: it is the thing to see here."""
    page.get_by_role("link", name="Dashboard", exact=True).click()
    expect(page.locator("#running progress")).to_be_visible()
    page.screenshot(path=IMAGES / "dashboard.png")


if __name__ == "__main__":
    main()
