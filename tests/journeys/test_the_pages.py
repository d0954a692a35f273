"""The pages on errors, on narrow screens, on slow networks, and with hostile content."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, WebSocketRoute, expect

from tests.journeys.browser import NARROW, WIDE, Witness, sign_in
from tests.journeys.product import Product
from tests.waiting import wait_until

PLAN_MS = 60_000

#: Terraform colours some of its lines; the page shows that by style, not by characters.
COLOURS = re.compile("\x1b\\[[0-9;]*m")

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def session(browser: Browser, product: Product) -> Any:
    """The cookies of an admin who has signed in and planned the demo once."""
    context = browser.new_context(viewport=WIDE)
    page = context.new_page()
    sign_in(page, product.url, product.password)
    page.get_by_role("link", name="demo", exact=True).click()
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.locator("#job-header")).to_have_attribute("data-status", "SUCCESS", timeout=PLAN_MS)
    cookies = context.storage_state()
    context.close()
    return cookies


def test_a_stranger_signs_in_first_and_then_gets_the_page_that_was_asked_for(
    browser: Browser, product: Product, session: Any
) -> None:
    context = browser.new_context(viewport=WIDE)
    page = context.new_page()
    page.goto(f"{product.url}/demo/runners/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(product.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Runners")).to_be_visible()
    expect(page.get_by_role("row", name="ONLINE")).to_be_visible()
    page.get_by_text("Signed in as admin").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(f"{product.url}/demo/runners/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    context.close()


def test_wrong_passwords_are_refused_and_then_throttled_with_the_time_to_try_again(
    browser: Browser, product: Product
) -> None:
    context = browser.new_context(viewport=WIDE)
    page = context.new_page()
    page.goto(f"{product.url}/sign-in")
    for _ in range(5):
        page.get_by_label("Name").fill("nobody")
        page.get_by_label("Password").fill("not the password")
        # Not the alert of the try before.
        with page.expect_navigation():
            page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("Try again in 15 minutes")
    context.close()


def test_what_is_not_there_is_a_page_that_says_so(page: Page, product: Product) -> None:
    for address in ("/demo/jobs/4711/", "/elsewhere/specs/", "/no/such/place"):
        answer = page.goto(product.url + address)
        assert answer is not None
        assert answer.status == 404
        expect(page.get_by_role("heading", name="Not found")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_narrow_screen_nothing_has_to_be_scrolled_sideways(
    browser: Browser, product: Product, session: Any, theme: Any
) -> None:
    context = browser.new_context(viewport=NARROW, storage_state=session, color_scheme=theme)
    witness, page = Witness(context), context.new_page()
    for address in (
        "specs/",
        "specs/demo/",
        "specs/demo/plans/1/",
        "specs/demo/destroy",
        "jobs/",
        "jobs/1/",
        "runners/",
    ):
        page.goto(f"{product.url}/demo/{address}")
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"], address
    assert witness.complaints == []
    context.close()


def test_the_colours_follow_the_switch_and_stay_chosen(page: Page, product: Product) -> None:
    def ground() -> Any:
        return page.evaluate("getComputedStyle(document.documentElement).backgroundColor")

    page.goto(f"{product.url}/demo/specs/")
    light = ground()
    page.get_by_role("button", name="Dark colours").click()
    dark = ground()
    assert dark != light
    page.reload()
    assert ground() == dark
    page.get_by_role("button", name="Match system colours").click()
    assert ground() == light


def test_forms_work_without_any_script(browser: Browser, product: Product, session: Any) -> None:
    context = browser.new_context(viewport=WIDE, storage_state=session, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{product.url}/demo/specs/demo/")
    page.get_by_role("button", name="Destroy…").click()
    page.get_by_label("Type demo to confirm").fill("something else")
    page.get_by_role("button", name="Destroy").click()
    expect(page.get_by_text("type 'demo' to confirm. Nothing was changed.")).to_be_visible()
    context.close()


class CutLine:
    """A line to the console that is cut after the first log lines, and stays cut until it is mended."""

    def __init__(self) -> None:
        self.is_cut = False
        self.is_mended = False

    def __call__(self, route: WebSocketRoute) -> None:
        if self.is_cut and not self.is_mended:
            route.close(code=1012, reason="the console restarts")
            return
        server = route.connect_to_server()

        def pass_on(message: str | bytes) -> None:
            route.send(message)
            if '"log"' in str(message) and not self.is_cut:
                self.is_cut = True
                server.close()
                route.close(code=1012, reason="the console restarts")

        server.on_message(pass_on)


def test_after_a_cut_the_page_says_so_and_every_line_is_there_once(page: Page, product: Product) -> None:
    line = CutLine()
    page.route_web_socket("**/ws/jobs/**", line)
    page.goto(f"{product.url}/demo/specs/demo/")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.get_by_text("offline for")).to_be_visible(timeout=PLAN_MS)
    expect(page.get_by_text("Connection lost.")).to_be_visible()
    line.is_mended = True
    expect(page.locator("#job-header")).to_have_attribute("data-status", "SUCCESS", timeout=PLAN_MS)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    raw = COLOURS.sub("", page.request.get(page.url + "log.txt").text()).splitlines()
    wait_until(lambda: len(shown_lines(page)) >= len(raw), what="the whole log being shown")
    assert shown_lines(page) == raw
    assert shown_numbers(page) == [str(number) for number in range(1, len(raw) + 1)]


def test_lists_change_by_themselves_but_not_under_the_pointer(
    context: BrowserContext, page: Page, product: Product
) -> None:
    watching, hovering = context.new_page(), context.new_page()
    for other in (watching, hovering):
        other.goto(f"{product.url}/demo/jobs/")
        expect(other.get_by_text("live", exact=True)).to_be_visible()
    before = watching.locator("tbody tr").count()
    hovering.locator("tbody tr").first.hover()
    page.goto(f"{product.url}/demo/specs/demo/")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(watching.locator("tbody tr")).to_have_count(before + 1)
    expect(hovering.get_by_role("button", name="1 new")).to_be_visible()
    expect(hovering.locator("tbody tr")).to_have_count(before)
    expect(watching.locator("tbody tr").first.locator(".status")).to_have_text("SUCCESS", timeout=PLAN_MS)
    hovering.get_by_role("button", name="1 new").click()
    expect(hovering.locator("tbody tr").first.locator(".status")).to_have_text("SUCCESS")


HOSTILE = [
    "<img src=x onerror=\"document.title='owned'\">",
    "<script>document.title='owned'</script>",
    "\u001b[31mred\u001b[0m and \u001b]8;;javascript:alert(1)\u0007link\u001b]8;;\u0007 \u001b[2J\u001b[1;1H",
    "name \u202egnp.exe",
    "x" * 32_768,
]


def test_hostile_lines_are_shown_as_text(context: BrowserContext, page: Page, product: Product) -> None:
    witness = Witness(context)

    def send_them(route: WebSocketRoute) -> None:
        lines = [
            {"at": "2026-11-16T03:00:00Z", "level": "info", "message": message, "data": None}
            for message in HOSTILE
        ]
        route.send(frame({"type": "log", "first_seq": 1, "lines": lines}))
        route.send(frame({"type": "current", "last_seq": len(lines)}))

    page.route_web_socket("**/ws/jobs/**", send_them)
    page.goto(f"{product.url}/demo/jobs/1/")
    expect(page.locator("[data-count]")).to_have_text("5 lines")
    visible_lines = shown_lines(page)
    assert visible_lines[:2] == HOSTILE[:2]
    assert visible_lines[2].rstrip() == "red and link"
    assert visible_lines[3] == "name <U+202E>gnp.exe"
    assert visible_lines[4] == HOSTILE[4]
    assert page.locator(".log-body img, .log-body script, .log-body a").count() == 0
    assert "owned" not in page.title()
    assert witness.complaints == []


def test_a_reader_who_scrolls_up_stops_following_and_comes_back_with_a_click(
    page: Page, product: Product
) -> None:
    socket = open_with_our_own_socket(page, f"{product.url}/demo/jobs/1/")
    send_lines(socket, first=1, count=1_000)
    expect(page.locator("[data-count]")).to_have_text("1,000 lines")
    page.get_by_role("button", name="Follow").click()
    stands_at_the_end(page)
    page.get_by_role("region", name="Log lines").hover()
    page.mouse.wheel(0, -2_000)
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "false")
    send_lines(socket, first=1_001, count=238)
    page.get_by_role("button", name="238 new lines").click()
    stands_at_the_end(page)
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "true")


def test_a_link_to_lines_marks_them_and_levels_filter(page: Page, product: Product) -> None:
    socket = open_with_our_own_socket(page, f"{product.url}/demo/jobs/1/#L700-702")
    send_lines(socket, first=1, count=2_000)
    expect(page.locator(".log-mark")).to_be_in_viewport()
    assert page.locator(".log-mark").bounding_box()["height"] == 3 * 17  # type: ignore[index]
    page.get_by_text("Errors", exact=True).click()
    wait_until(
        lambda: shown_numbers(page) == [str(number) for number in range(100, 2_001, 100)], what="errors only"
    )


def open_with_our_own_socket(page: Page, address: str) -> WebSocketRoute:
    """Open a job's page whose log comes from the test."""
    opened: list[WebSocketRoute] = []

    def take(route: WebSocketRoute) -> None:
        opened.append(route)

    page.route_web_socket("**/ws/jobs/**", take)
    page.goto(address)
    expect(page.get_by_text("catching up")).to_be_visible()
    return opened[0]


def send_lines(route: WebSocketRoute, *, first: int, count: int) -> None:
    """Every hundredth line is an error."""
    lines = [
        {
            "at": "2026-11-16T03:00:00Z",
            "level": "info" if seq % 100 else "error",
            "message": f"line {seq}",
            "data": None,
        }
        for seq in range(first, first + count)
    ]
    route.send(frame({"type": "log", "first_seq": first, "lines": lines}))
    route.send(frame({"type": "current", "last_seq": first + count - 1}))


def stands_at_the_end(page: Page) -> None:
    page.wait_for_function(
        "(() => { const box = document.querySelector('.log-lines');"
        " return box.scrollHeight - box.clientHeight - box.scrollTop < 20; })()"
    )


def shown_lines(page: Page) -> list[str]:
    return "".join(
        page.locator(".log-body").evaluate_all("all => all.map(one => one.textContent)")
    ).splitlines()


def shown_numbers(page: Page) -> list[str]:
    return "".join(
        page.locator(".log-gutter").evaluate_all("all => all.map(one => one.textContent)")
    ).splitlines()


def frame(message: dict[str, Any]) -> str:
    return json.dumps(message)
