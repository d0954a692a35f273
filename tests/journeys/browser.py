"""A real Chromium, and a witness of every error in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.test import Client
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.chromium import chromium
from tests.waiting import wait_until

if TYPE_CHECKING:  # the pictures are taken without Django
    from console.accounts.models import User

#: What Playwright takes for a cookie has no public name.
Cookie = Any

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

#: On a busy machine a page may take its time; what never comes still fails.
PATIENCE_MS = 30_000

WIDE = ViewportSize(width=1440, height=900)
NARROW = ViewportSize(width=400, height=860)


#: htmx says so of a request that a newer one, or leaving the page, made pointless. One that failed says
#: `htmx:sendError` besides.
GIVEN_UP = ("htmx:sendAbort", "htmx:afterRequest")


class Witness:
    """Errors of scripts, refused by the content security policy, and failed loads."""

    def __init__(self, context: BrowserContext) -> None:
        self.complaints: list[str] = []
        self._context = context
        context.on("console", self._console)
        context.on("weberror", lambda error: self.complaints.append(f"script: {error.error}"))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(GIVEN_UP):
            self.complaints.append(f"{message.type}: {message.text}")

    def forgive(self, words: str) -> None:
        """Drop complaints that the step just made was meant to cause."""
        wait_until(lambda: self._heard(words), what=f"{words!r} in {self.complaints}")
        self.complaints = [complaint for complaint in self.complaints if words not in complaint]

    def _heard(self, words: str) -> bool:
        """Let the browser deliver pending messages, then search the complaints."""
        self._context.pages[0].evaluate("0")
        return any(words in complaint for complaint in self.complaints)


@contextmanager
def running_browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def session_of(user: User, url: str) -> Cookie:
    """Return the cookie of a signed-in person. Call it before a browser starts: Django refuses later."""
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    return {"name": settings.SESSION_COOKIE_NAME, "value": session, "url": url}


def open_context(browser: Browser, *cookies: Cookie, **options: Any) -> BrowserContext:
    """Open a browser context for one person."""
    context = browser.new_context(**{"viewport": WIDE, **options})
    context.add_cookies(list(cookies))
    return context


def sign_in(page: Page, url: str, password: str) -> None:
    page.goto(url)
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Dashboard").wait_for()
    page.get_by_role("link", name="Specs", exact=True).click()
    page.get_by_role("heading", name="Specs", exact=True).wait_for()
