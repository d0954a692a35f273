"""The pages of state as a person uses them, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from console.state.models import StateLock, StateVersion
from console.state.services import import_state
from tests.journeys.browser import WIDE, Witness, running_browser
from tests.people import Tenant
from tests.state.documents import SECRET, after, before

#: The figure is for a busy machine.
PATIENCE_MS = 30_000
PASSWORD = "a password of this test only"


@pytest.mark.timeout(180)
def test_browse_compare_unlock_and_roll_back(served: str, ours: Tenant) -> None:
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
        page.get_by_role("link", name="What it changed").click()
        expect(page.get_by_text("5 resources differ, and 2 outputs.")).to_be_visible()
        assert SECRET not in page.content()

        page.get_by_role("link", name="State", exact=True).last.click()
        page.get_by_role("row", name="uploaded it").last.get_by_role("button", name="Roll back…").click()
        page.get_by_label("Type network to confirm").fill("not its name")
        page.get_by_role("button", name="Roll back to serial 1").click()
        expect(page.get_by_role("alert").filter(has_text="is not 'network'")).to_be_visible()
        witness.forgive("400")
        page.get_by_label("Type network to confirm").fill("network")
        page.get_by_role("button", name="Roll back to serial 1").click()
        expect(page.get_by_role("heading", name="Serial 3 of network")).to_be_visible()
        assert not witness.complaints
        context.close()
    # Playwright keeps an event loop in this thread, and Django would not be asked beside it.
    assert not StateLock.objects.exists()
    assert [version.serial for version in StateVersion.objects.order_by("serial")] == [1, 2, 3]
