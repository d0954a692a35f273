"""axe-core finds nothing on any page, in light or in dark; nothing moves, nor is too wide for a phone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser
from playwright.sync_api import Page as Tab

from tests.console.pages.sample_organization import Sample, pages_of
from tests.console_process import Server
from tests.journeys.browser import NARROW, WIDE, Cookie, Witness, open_context, running_browser, session_of

pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.timeout(300)]

#: Answers that are no pages: files, and parts that a page fetches.
NOT_PAGES = {
    "audit-export", "dashboard-running", "job-export", "job-graph", "job-header", "job-log", "plan-raw",
    "state-download", "state-resource",
}  # fmt: skip

#: Only colours differ between the themes, so that only these rules are tried again in the other one.
COLOUR_RULES = ["color-contrast", "link-in-text-block"]


@pytest.fixture(scope="module")
def cookie(sample: Sample, server: Server) -> Cookie:
    """The session of an admin."""
    return session_of(sample.tenant.admin, server.url)


@pytest.fixture(scope="module")
def browser(cookie: Cookie) -> Iterator[Browser]:
    with running_browser() as running:
        yield running


#: Adds up how far things moved by themselves while the page loaded, as browsers measure it.
MOVES = """
  window.moved = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((one) => (window.moved += one.value)))
    .observe({ type: "layout-shift", buffered: true });
"""
#: From here on, people who are measured call a page restless.
RESTLESS = 0.1


def violations(tab: Tab, rules: list[str] | None = None) -> list[str]:
    # Everything is of this page: there is no frame to look into and no style sheet to fetch from elsewhere.
    options = {"resultTypes": ["violations"], "preload": False, "iframes": False}
    options |= {"runOnly": rules} if rules else {}
    found = tab.evaluate("options => axe.run(document, options)", options)
    return [
        f"{one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:300]}"
        for one in found["violations"]
        for node in one["nodes"][:3]
    ]


def found_on(tab: Tab, url: str) -> dict[str, list[str]]:
    """What is wrong with a page in each theme, as it loads, and on a narrow screen."""
    tab.goto(url, wait_until="load")
    tab.evaluate("document.documentElement.dataset.theme = 'light'")
    found = {f"light {url}": violations(tab)}
    tab.evaluate("document.documentElement.dataset.theme = 'dark'")
    found[f"dark {url}"] = violations(tab, COLOUR_RULES)
    if (moved := tab.evaluate("window.moved")) > RESTLESS:
        found[f"moves {url}"] = [f"by {moved:.2f} as it loads"]
    tab.set_viewport_size(NARROW)
    if tab.evaluate("document.documentElement.scrollWidth") > NARROW["width"]:
        found[f"narrow {url}"] = ["has to be scrolled sideways"]
    tab.set_viewport_size(WIDE)
    return {where: what for where, what in found.items() if what}


def test_axe_finds_nothing_on_any_page_and_none_moves_or_is_too_wide_for_a_phone(
    browser: Browser, server: Server, sample: Sample, cookie: Cookie
) -> None:
    context = open_context(browser, cookie, reduced_motion="reduce")
    context.add_init_script(AXE_SCRIPT)
    context.add_init_script(MOVES)
    witness, tab = Witness(context), context.new_page()
    found: dict[str, list[str]] = {}
    for page in pages_of(sample):
        if page.name not in NOT_PAGES:
            found |= found_on(tab, server.url + page.path)
    assert witness.complaints == []
    for path in ("/ours/search?q=nothing-is-called-that", "/ours/jobs/?status=CANCELLED", "/ours/jobs/4711/"):
        found |= found_on(tab, server.url + path)
    assert found == {}
    context.close()


def test_axe_finds_nothing_before_the_sign_in(browser: Browser, server: Server, sample: Sample) -> None:
    context = open_context(browser)
    context.add_init_script(AXE_SCRIPT)
    context.add_init_script(MOVES)
    tab = context.new_page()
    found: dict[str, list[str]] = {}
    for path in ("/sign-in", f"/join/{sample.invitation}", "/join/nothing"):
        found |= found_on(tab, server.url + path)
    assert found == {}
    context.close()
