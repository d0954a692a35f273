"""The job page and the plan page in a real browser: long logs, cuts, progress as it happens, long plans."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from django.utils import timezone
from playwright.sync_api import CDPSession, FloatRect, Locator, Page, expect

from console.accounts.models import User
from console.jobs.models import Job, LogChunk
from tests.console.jobs.test_errored_states import STATE, upload
from tests.console.plans.review import document, resource
from tests.console_app import Console, RunnerClient, receipt
from tests.console_process import Programs, Server
from tests.journeys.browser import Witness, open_context, running_browser, session_of
from tests.people import Tenant
from tests.plans_made import a_plan
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(180)

#: Longer than what comes at once: the page fetches the rest when the reader gets there.
LONG = 60_000
CHUNK = 500


@contextmanager
def open_page(server: Server, person: User) -> Iterator[tuple[Page, Witness]]:
    session = session_of(person, server.url)
    with running_browser() as browser:
        context = open_context(browser, session, permissions=["clipboard-read", "clipboard-write"])
        yield context.new_page(), Witness(context)


@pytest.fixture
def server(programs: Programs) -> Server:
    return programs.server()


def shown_lines(page: Page) -> list[str]:
    bodies = page.locator(".log-body").evaluate_all("all => all.map(one => one.textContent)")
    return "".join(bodies).splitlines()


def shown_numbers(page: Page) -> list[int]:
    gutters = page.locator(".log-gutter").evaluate_all("all => all.map(one => one.textContent)")
    return [int(number) for number in "".join(gutters).split()]


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {
        "at": timezone.now().isoformat(),
        "level": "info",
        "message": f"{kind} {data}",
        "data": {"kind": kind, **data},
    }


def phase(name: str, event_name: str, **more: Any) -> dict[str, Any]:
    return event("phase", phase=name, event=event_name, **more)


def of_resource(address: str, event_name: str, **more: Any) -> dict[str, Any]:
    return event(
        "resource",
        address=address,
        module="",
        type="terraform_data",
        action="create",
        event=event_name,
        **more,
    )


# A long log


def a_long_log(tenant: Tenant) -> Job:
    """A job that has ended: `init` up to line 2,000, then `apply`; an error in line 100, a needle in 777."""
    job = tenant.request()
    now = timezone.now()
    Job.objects.filter(pk=job.pk).update(
        status="SUCCESS", claimed_at=now, started_at=now, finished_at=now, log_next_seq=LONG + 1
    )
    LogChunk.objects.bulk_create(
        LogChunk(
            job_id=job.pk,
            first_seq=first,
            line_count=CHUNK,
            level_mask=0b1010 if first == 1 else 0b10,
            lines="\n".join(_long_line(seq) for seq in range(first, first + CHUNK)),
        )
        for first in range(1, LONG, CHUNK)
    )
    return job


def _long_line(seq: int) -> str:
    line: dict[str, Any] = {
        "at": "2026-11-16T03:00:00Z",
        "level": "info",
        "message": f"line {seq}",
        "data": None,
    }
    if seq in (1, 2_001):
        line["data"] = {"kind": "phase", "phase": "init" if seq == 1 else "apply", "event": "start"}
    if seq == 100:
        line["level"] = "error"
    if seq == 777:
        line["message"] = "\x1b[31mneedle\x1b[0m <b>in the hay</b>"
    return orjson.dumps(line).decode()


def test_a_long_log_is_found_folded_linked_and_copied_although_most_of_it_is_not_loaded(
    server: Server, ours: Tenant
) -> None:
    job = a_long_log(ours)
    with open_page(server, ours.viewer) as (page, witness):
        page.goto(f"{server.url}/ours/jobs/{job.number}/")
        expect(page.locator("[data-count]")).to_have_text("60,000 lines")
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        assert len(shown_lines(page)) < 10_000, "the beginning waits until somebody looks"
        finds_a_line_that_was_not_there(page)
        folds(page)
        follows_a_link_to_a_range_and_copies_it(page)
        filters_what_is_not_there_by_level(page)
        sees_times_on_demand(page)
        assert witness.complaints == []


def finds_a_line_that_was_not_there(page: Page) -> None:
    page.get_by_label("Find in the whole log").fill("NEEDLE")
    expect(page.locator(".log-find output")).to_have_text("1 of 1")
    hit = page.locator(".log-body", has_text="needle <b>in the hay</b>")
    expect(hit).to_be_visible()
    expect(page.locator(".log-hit")).to_be_in_viewport()
    assert hit.locator("b").count() == 0
    assert hit.locator(".ansi-31").text_content() == "needle"
    page.get_by_label("Find in the whole log").fill("line 5999")
    expect(page.locator(".log-find output")).to_have_text("1 of 11")
    page.get_by_label("Find in the whole log").press("Enter")
    expect(page.locator(".log-find output")).to_have_text("2 of 11")
    page.get_by_label("Find in the whole log").press("Shift+Enter")
    expect(page.locator(".log-find output")).to_have_text("1 of 11")
    page.get_by_label("Find in the whole log").fill("nowhere")
    expect(page.locator(".log-find output")).to_have_text("No matches")
    page.get_by_label("Find in the whole log").press("Escape")
    expect(page.locator(".log-find output")).to_have_text("")


def folds(page: Page) -> None:
    init = page.locator(".log-phase", has=page.locator("summary", has_text="init"))
    expect(init.locator("summary")).to_contain_text("2,000 lines")
    is_open = init.evaluate("one => one.open")
    init.locator("summary").click()
    assert init.evaluate("one => one.open") != is_open
    page.get_by_role("button", name="Fold").click()
    assert page.locator(".log-phase[open]").count() == 0
    page.get_by_role("button", name="Fold").click()
    assert page.locator(".log-phase[open]").count() == 2


def follows_a_link_to_a_range_and_copies_it(page: Page) -> None:
    page.get_by_role("button", name="Fold").click()
    page.evaluate("location.hash = '#L30001-30003'")
    expect(page.locator(".log-body", has_text="line 30002")).to_be_visible()
    expect(page.locator(".log-mark")).to_be_in_viewport()
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("button", name="Copied 3 lines")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "line 30001\nline 30002\nline 30003\n"
    box = wait_until(lambda: place_at_rest(page.locator(".log-mark")), what="a mark that stands still")
    assert box is not None
    page.mouse.click(box["x"] + 30, box["y"] + 2)
    expect(page).to_have_url(re.compile("#L30001$"))
    page.keyboard.down("Shift")
    page.mouse.click(box["x"] + 30, box["y"] + 17 * 4 + 2)
    page.keyboard.up("Shift")
    expect(page).to_have_url(re.compile("#L30001-30005$"))


def place_at_rest(locator: Locator) -> FloatRect | None:
    """Return the position of the line once rows fetched above it no longer move it."""
    before = locator.bounding_box()
    locator.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return before if before == locator.bounding_box() else None


def filters_what_is_not_there_by_level(page: Page) -> None:
    page.evaluate("history.replaceState(null, '', location.pathname)")
    page.get_by_text("Errors", exact=True).click()
    wait_until(lambda: shown_numbers(page) == [100], what="errors only")
    page.get_by_text("All", exact=True).click()
    wait_until(lambda: len(shown_numbers(page)) > 5_000, what="all lines again")


def sees_times_on_demand(page: Page) -> None:
    page.get_by_role("button", name="Times").click()
    expect(page.locator(".log-gutter").last).to_contain_text(":")


# Cuts


class Writer:
    """A runner that writes a line after the other until it is told to end, whatever else happens."""

    def __init__(self, runner: RunnerClient, claim: Any) -> None:
        self._runner, self._claim = runner, claim
        self.written = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        while not self._ending.wait(0.02):
            self._runner.log(self._claim, self.written + 1, f"line {self.written + 1}")
            self.written += 1

    def end(self) -> None:
        self._ending.set()
        self._thread.join()
        batches = [[f"line {number}"] for number in range(1, self.written + 1)]
        log = receipt(self.written + 1, *batches)
        assert self._runner.succeed(self._claim, log=log).status_code == 200


def test_a_console_restart_and_a_laptop_sleep_in_the_middle_of_a_log_leave_it_whole(
    server: Server, console: Console, ours: Tenant
) -> None:
    runner = console.new_runner(ours)
    job = ours.request()
    writer = Writer(runner, runner.take_and_start())
    with open_page(server, ours.viewer) as (page, _):
        page.goto(f"{server.url}/ours/jobs/{job.number}/")
        sees_at_least(page, 5)
        the_console_restarts(page, server, writer)
        the_line_is_away(page, writer)
        the_laptop_sleeps(page, writer)
        writer.end()
        expect(page.locator("#job-header")).to_have_attribute("data-status", "SUCCESS")
        expect(page.get_by_text("✓ complete")).to_be_visible()
        wait_until(lambda: len(shown_lines(page)) >= writer.written, what="the whole log")
        assert shown_lines(page) == [f"line {number}" for number in range(1, writer.written + 1)]
        assert shown_numbers(page) == list(range(1, writer.written + 1))


def the_console_restarts(page: Page, server: Server, writer: Writer) -> None:
    server.kill()
    expect(page.get_by_text("Connection lost.")).to_be_visible()
    expect(page.get_by_text("offline for")).to_be_visible()
    server.start()
    expect(page.get_by_text("Reconnected.")).to_be_visible(timeout=60_000)
    sees_at_least(page, writer.written + 1)


def the_line_is_away(page: Page, writer: Writer) -> None:
    page.context.set_offline(True)
    page.evaluate("for (const socket of window.sockets ?? []) socket.close()")
    before = writer.written
    wait_until(lambda: writer.written > before + 20, what="lines that the page cannot hear of")
    page.context.set_offline(False)
    sees_at_least(page, writer.written + 1)


def the_laptop_sleeps(page: Page, writer: Writer) -> None:
    """Freeze the page's scripts while the job goes on."""
    session: CDPSession = page.context.new_cdp_session(page)
    session.send("Page.setWebLifecycleState", {"state": "frozen"})
    before = writer.written
    wait_until(lambda: writer.written > before + 20, what="lines that the page sleeps through")
    session.send("Page.setWebLifecycleState", {"state": "active"})
    sees_at_least(page, writer.written + 1)


def sees_at_least(page: Page, count: int) -> None:
    wait_until(lambda: len(shown_lines(page)) >= count, seconds=30, what=f"{count} lines")


# Progress, diagnostics, and what is left


def test_resources_and_graph_change_as_it_happens_and_what_is_left_is_told(
    server: Server, console: Console, ours: Tenant
) -> None:
    configured = [
        {"address": "terraform_data.one", "mode": "managed", "type": "terraform_data", "name": "one"},
        {
            "address": "terraform_data.two",
            "mode": "managed",
            "type": "terraform_data",
            "name": "two",
            "expressions": {"input": {"references": ["terraform_data.one.id", "terraform_data.one"]}},
        },
    ]
    plan = a_plan(
        console,
        ours,
        json=document(
            resource("terraform_data.one", "create"),
            resource("terraform_data.two", "create"),
            configuration={"root_module": {"resources": configured}},
        ),
    )
    answer = console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy", json={})
    number, runner = answer.json()["number"], console.new_runner(ours)
    with open_page(server, ours.operator) as (page, witness):
        page.goto(f"{server.url}/ours/jobs/{number}/")
        expect(page.locator("resource-graph .box.is-waiting")).to_have_count(2)
        expect(page.locator("resource-graph .line")).to_have_count(1)
        claim = runner.take_and_start()
        runner.log_lines(claim, 1, [phase("init", "start"), phase("init", "end", seconds=1.5)])
        runner.log_lines(claim, 3, [phase("apply", "start"), of_resource("terraform_data.one", "started")])
        expect(graph_box(page, "terraform_data.one")).to_have_class("box is-running")
        expect(page.locator(".phase.is-running", has_text="apply")).to_be_visible()
        runner.log_lines(claim, 5, [of_resource("terraform_data.one", "done", seconds=2.5)])
        expect(graph_box(page, "terraform_data.one")).to_have_class("box is-done")
        expect(graph_box(page, "terraform_data.two")).to_have_class("box is-waiting")
        same_as_a_list(page)
        zooms(page)
        runner.log_lines(claim, 6, [of_resource("terraform_data.two", "failed", seconds=0.5), an_error()])
        expect(graph_box(page, "terraform_data.two")).to_have_class("box is-failed")
        jumps_from_the_card_to_the_line(page)
        assert upload(runner, claim) == 201
        expect(page.get_by_text("State not saved.")).to_be_visible()
        runner.fail(claim, fatal=True)
        slowest_first(page)
        # The one that never ended is where it stopped.
        expect(page.locator(".phase.is-done", has_text="init")).to_contain_text("1.5 s")
        expect(page.locator(".phase.is-failed", has_text="apply")).to_contain_text(" s")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download errored.tfstate").click()
        assert download.value.path().read_bytes() == STATE
        assert witness.complaints == []


def graph_box(page: Page, key: str) -> Any:
    return page.locator(f'resource-graph .box[data-key="{key}"]')


def same_as_a_list(page: Page) -> None:
    page.get_by_text("View as list").click()
    items = page.locator(".graph-list li")
    expect(items.first).to_have_text("terraform_data.one: done")
    expect(items.last).to_have_text("terraform_data.two: waiting, after terraform_data.one")


def zooms(page: Page) -> None:
    picture = page.locator("resource-graph svg")
    before = float(picture.get_attribute("width") or 0)
    page.get_by_role("button", name="Larger").click()
    assert float(picture.get_attribute("width") or 0) > before
    page.get_by_role("button", name="Fit").click()
    assert float(picture.get_attribute("width") or 0) == before


def an_error() -> dict[str, Any]:
    snippet = {
        "context": None,
        "code": 'x = "<b>"',
        "start_line": 3,
        "highlight_start": 0,
        "highlight_end": 1,
    }
    line = event(
        "diagnostic",
        severity="error",
        summary="It <i>broke</i>\u202e",
        detail="In detail.",
        address="terraform_data.two",
        file="main.tf",
        line=3,
        snippet={**snippet, "values": []},
    )
    return {**line, "level": "error", "message": "Error: it broke"}


def jumps_from_the_card_to_the_line(page: Page) -> None:
    card = page.locator(".diagnostic.error")
    expect(card).to_contain_text("It <i>broke</i><U+202E>")
    expect(card).to_contain_text("main.tf:3")
    expect(card.locator("mark")).to_have_text("x")
    card.get_by_role("link", name="line 7").click()
    expect(page.locator(".log-mark")).to_be_in_viewport()


def slowest_first(page: Page) -> None:
    expect(page.get_by_role("button", name="Slowest first")).to_be_visible()
    page.mouse.move(5, 5)
    expect(page.locator(".resource .share").first).to_be_visible()
    expect(page.locator(".resource").first).to_contain_text("created 2.5 s")


# A long plan


def test_a_long_plan_is_found_filtered_and_read_to_its_end(
    server: Server, console: Console, ours: Tenant
) -> None:
    resources = [resource(f"terraform_data.r{number:02}", "create") for number in range(70)]
    inside = {**resource("module.net.terraform_data.old", "delete"), "module_address": "module.net"}
    plan = a_plan(console, ours, json=document(inside, *resources))
    with open_page(server, ours.operator) as (page, witness):
        page.goto(f"{server.url}/ours/specs/{plan.spec.slug}/plans/{plan.number}/")
        expect(page.locator(".change").first).to_contain_text("module.net.terraform_data.old")
        page.get_by_label("Find a resource").press_sequentially("r6")
        expect(page.locator(".change")).to_have_count(10)
        expect(page.get_by_text("10 of 71 resources.")).to_be_visible()
        expect(page).to_have_url(re.compile("q=r6"))
        page.get_by_label("Find a resource").fill("")
        page.get_by_label("Action").select_option("delete")
        expect(page.locator(".change")).to_have_count(1)
        page.get_by_label("Action").select_option("")
        page.get_by_role("button", name="Show all attributes").click()
        read_to_the_end(page, 71)
        assert page.locator(".change:not([open])").count() == 0, "also what came later is open"
        expect(page.get_by_role("button", name="Apply 71 changes…")).to_be_visible()
        assert witness.complaints == []


def read_to_the_end(page: Page, count: int) -> None:
    def all_here() -> bool:
        page.mouse.wheel(0, 4_000)
        return page.locator(".change").count() == count

    expect(page.locator(".more-changes")).to_be_attached()
    wait_until(all_here, seconds=20, what=f"{count} resources")
    expect(page.locator(".more-changes")).to_have_count(0)
