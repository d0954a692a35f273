"""One installation and one browser for each file of journeys, and a signed-in page for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.journeys.browser import WIDE, running_browser, sign_in
from tests.journeys.product import Product, running_product
from tests.throwaway_postgres import reachable_directory


@pytest.fixture(scope="module")
def product_environment() -> dict[str, str]:
    """Settings of the product beside its defaults. A file with settings of its own overrides this."""
    return {}


@pytest.fixture(scope="module")
def product(product_environment: dict[str, str]) -> Iterator[Product]:
    folder = reachable_directory("slipway-")
    with running_product(folder, **product_environment) as product:
        yield product
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def session(browser: Browser, product: Product) -> Any:
    """The cookies of an admin who has signed in."""
    context = browser.new_context(viewport=WIDE)
    sign_in(context.new_page(), product.url, product.password)
    cookies = context.storage_state()
    context.close()
    return cookies


@pytest.fixture
def context(browser: Browser, session: Any) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport=WIDE, storage_state=session)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()
