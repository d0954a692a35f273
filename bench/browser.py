"""A real Chromium on one page, signed in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from django.conf import settings
from playwright.sync_api import Page, sync_playwright

from bench.visitor import Visitor
from console.local.doctor import find_chromium

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


@contextlib.contextmanager
def a_page(visitor: Visitor) -> Iterator[Page]:
    path = find_chromium()
    if path is None:
        raise RuntimeError("No Chromium found. Run `.venv/bin/python -m tests.chromium`.")
    # Playwright's loop runs in this thread; Django sees one and would refuse the database to it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    cookie = {"name": settings.SESSION_COOKIE_NAME, "value": visitor.session, "url": visitor.url}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            context.add_cookies([cookie])  # type: ignore[list-item]
            yield context.new_page()
        finally:
            browser.close()
