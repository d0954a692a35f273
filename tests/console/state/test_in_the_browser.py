"""The pages of state as a person uses them, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import APIResponse, Page, Request, Route, expect

from console.state.models import StateLock, StateVersion
from console.state.services import import_state
from tests.console.state.documents import SECRET, after, before
from tests.journeys.browser import WIDE, Witness, running_browser
from tests.people import Tenant

#: The figure is for a busy machine.
PATIENCE_MS = 30_000
PASSWORD = "a password of this test only"


@contextmanager
def locked_state(served: str, ours: Tenant) -> Iterator[tuple[Page, Witness]]:
    """The page of a locked state with two versions, as the admin sees it."""
    ours.admin.set_password(PASSWORD)
    ours.admin.save()
    import_state(spec=ours.spec, body=before(1), imported_by=ours.operator)
    import_state(spec=ours.spec, body=after(2), imported_by=ours.operator)
    StateLock.objects.create(
        spec=ours.spec, lock_id="a-lock", info={"ID": "a-lock", "Who": "me@laptop"}, user=ours.operator
    )
    with running_browser() as browser:
        context = browser.new_context(viewport=WIDE)
        witness, page = Witness(context), context.new_page()
        expect.set_options(timeout=PATIENCE_MS)
        page.goto(served)
        page.get_by_label("Name").fill(ours.admin.username)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="State", exact=True).click()
        expect(page.get_by_role("row", name="network")).to_contain_text("ours-operator (me@laptop)")
        page.get_by_role("link", name="network").click()
        expect(page.get_by_text("Locked by ours-operator (me@laptop)")).to_be_visible()
        yield page, witness
        assert not witness.complaints
        context.close()


@pytest.mark.timeout(180)
def test_browse_compare_unlock_and_roll_back(served: str, ours: Tenant) -> None:
    with locked_state(served, ours) as (page, witness):
        # A locked state is not rolled back; the lock is taken away first.
        page.get_by_role("button", name="Force-unlock…").click()
        page.get_by_role("dialog").get_by_role("button", name="Force-unlock").click()
        expect(page.get_by_text("Locked by")).to_have_count(0)

        page.get_by_role("link", name="Browse resources").click()
        page.get_by_text("aws_db_instance.main").click()
        opened = page.locator(".state-instance[open] .state-attributes")
        expect(opened).to_contain_text("db-1")
        expect(opened.get_by_text("(sensitive)", exact=True)).to_have_count(2)
        page.get_by_label("Find a resource").fill("bucket")
        page.get_by_label("Find a resource").press("Enter")
        expect(page.get_by_text("aws_s3_bucket.logs")).to_be_visible()
        expect(page.get_by_text("aws_vpc.main")).to_have_count(0)
        page.get_by_role("link", name="Compare with previous").click()
        expect(page.get_by_text("5 resources differ and 2 outputs")).to_be_visible()
        assert SECRET not in page.content()

        page.get_by_role("link", name="State", exact=True).last.click()
        page.get_by_role("row", name="uploaded it").last.get_by_role("button", name="Roll back…").click()
        page.get_by_label("Type network to confirm").fill("not its name")
        page.get_by_role("button", name="Roll back to serial 1").click()
        expect(page.get_by_role("alert").filter(has_text="type 'network' to confirm")).to_be_visible()
        witness.forgive("400")
        page.get_by_label("Type network to confirm").fill("network")
        page.get_by_role("button", name="Roll back to serial 1").click()
        expect(page.get_by_role("heading", name="Serial 3 of network")).to_be_visible()
    # Playwright keeps an event loop in this thread, and Django would not be asked beside it.
    assert not StateLock.objects.exists()
    assert [version.serial for version in StateVersion.objects.order_by("serial")] == [1, 2, 3]


@pytest.mark.timeout(180)
def test_a_link_that_is_renewed_before_its_answer_still_changes_the_address(
    served: str, ours: Tenant
) -> None:
    with locked_state(served, ours) as (page, _):
        routes: list[Route] = []
        # Not `held.append` itself: Playwright writes on what it is given.
        page.route("**/state/2/", lambda route: routes.append(route))  # noqa: PLW0108
        with page.expect_request("**/state/2/"):
            page.get_by_role("link", name="Browse resources").click()
        page.evaluate("document.getElementById('state-live').classList.add('as-it-was')")
        page.evaluate("document.body.dispatchEvent(new CustomEvent('specs-changed'))")
        expect(page.locator(".as-it-was")).to_have_count(0)
        routes[0].continue_()
        expect(page.get_by_role("heading", name="Serial 2 of network")).to_be_visible()
        expect(page).to_have_url(f"{served}/ours/specs/network/state/2/")


@pytest.mark.timeout(180)
def test_a_button_that_is_being_pressed_is_not_renewed_before_it_is_let_go(served: str, ours: Tenant) -> None:
    with locked_state(served, ours) as (page, _):
        page.get_by_role("button", name="Force-unlock…").hover()
        page.mouse.down()
        page.evaluate("document.getElementById('state-live').classList.add('as-it-was')")
        with page.expect_request_finished(lambda request: request.headers.get("hx-target") == "state-live"):
            page.evaluate("document.body.dispatchEvent(new CustomEvent('specs-changed'))")
        expect(page.locator(".as-it-was")).to_have_count(1)
        page.mouse.up()
        expect(page.get_by_role("dialog")).to_be_visible()
        expect(page.locator(".as-it-was")).to_have_count(0)  # what came meanwhile is shown now


@pytest.mark.timeout(180)
def test_the_late_answer_of_a_form_does_not_pull_back_who_went_on(served: str, ours: Tenant) -> None:
    with locked_state(served, ours) as (page, _):
        answers: list[tuple[Route, APIResponse]] = []
        unlock = f"{served}/ours/specs/network/state/unlock"
        page.get_by_role("button", name="Force-unlock…").click()
        page.route(unlock, lambda route: answers.append((route, route.fetch())))
        page.get_by_role("dialog").get_by_role("button", name="Force-unlock").click()
        expect(page.get_by_text("Locked by")).to_have_count(0)  # by a push: the form has no answer yet
        page.keyboard.press("Escape")
        page.get_by_role("link", name="Browse resources").click()
        expect(page.get_by_role("heading", name="Serial 2 of network")).to_be_visible()

        requests: list[Request] = []
        page.on("request", lambda request: requests.append(request))  # noqa: PLW0108
        route, answer = answers[0]
        with page.expect_response(unlock):
            route.fulfill(response=answer)
        # Where the form leads would be asked for at once, so before what is clicked now.
        page.get_by_role("link", name="Compare with previous").click()
        expect(page.get_by_text("5 resources differ and 2 outputs")).to_be_visible()
        pages = [request.url for request in requests if request.resource_type == "xhr"]
        assert pages == [f"{served}/ours/specs/network/state/compare?from=1&to=2"]
