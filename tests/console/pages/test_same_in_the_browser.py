"""The server and the scripts of a page use the same words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Page as Tab

from console.durations import duration
from console.pages.templatetags.parts import age
from console.pages.templatetags.plans import GLYPHS
from tests.console_process import Server
from tests.journeys.browser import open_context, running_browser

SECONDS = (0, 0.001, 0.04, 0.6, 1, 4.26, 9.94, 9.96, 33.3, 59.4, 59.7, 61, 3_599.2, 3_600, 7_325, 200_000)
AGES = (-90_000, -61, -5, -4, 0, 4.9, 5, 59.9, 60, 3_599, 3_600, 86_399, 86_400, 1_000_000)


@pytest.fixture(scope="module")
def tab(server: Server) -> Iterator[Tab]:
    with running_browser() as browser:
        page = open_context(browser).new_page()
        page.goto(f"{server.url}/sign-in")
        yield page


def called(tab: Tab, function: str, numbers: tuple[float, ...]) -> list[str]:
    words: list[str] = tab.evaluate(
        "async ([name, numbers]) => {"
        "  const module = await import('/static/js/relative-time.js');"
        "  return numbers.map((number) => module[name](number));"
        "}",
        [function, list(numbers)],
    )
    return words


def test_durations_read_the_same(tab: Tab) -> None:
    assert called(tab, "duration", SECONDS) == [duration(timedelta(seconds=number)) for number in SECONDS]


def test_ages_read_the_same(tab: Tab) -> None:
    assert called(tab, "ago", AGES) == [age(number) for number in AGES]


def test_actions_have_the_same_glyphs(tab: Tab) -> None:
    glyphs = tab.evaluate("async () => (await import('/static/js/resource-progress.js')).GLYPHS")
    assert glyphs == GLYPHS
