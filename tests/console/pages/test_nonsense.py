"""Addresses and forms that say what no page offers: refused or overlooked, never a failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest
from django.http import QueryDict

from tests.console.pages.sample_organization import Page, actions_of, create_sample, pages_of
from tests.console.pages.test_roles import asked, client_of
from tests.console_app import Console
from tests.people import Tenant

NONSENSE = ["\x00", "9" * 5_000, "9" * 18, "-1", "x" * 5_000, "9999-12-31", "\N{SUPERSCRIPT TWO}", b"\xff"]


@pytest.fixture
def names_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], list[str]]:
    """What is looked for in an address's query or in a form while something is done."""

    def names_of(done: Callable[[], Any]) -> list[str]:
        names: set[str] = set()
        plain = QueryDict.get

        def noted(query: QueryDict, name: str, default: Any = None) -> Any:
            names.add(name)
            return plain(query, name, default)

        with monkeypatch.context() as patch:
            patch.setattr(QueryDict, "get", noted)
            done()
        return sorted(names)

    return names_of


def test_nonsense_in_an_address(
    console: Console, ours: Tenant, names_read: Callable[[Callable[[], Any]], list[str]]
) -> None:
    client, tried, failed = client_of(ours.admin), 0, []
    for page in pages_of(create_sample(console, ours)):
        for name in names_read(partial(client.get, page.path)):
            for value in NONSENSE:
                tried += 1
                if client.get(f"{page.path.partition('?')[0]}?{urlencode({name: value})}").status_code >= 500:
                    failed.append((page.path, name, value[:10]))
    assert failed == []
    assert tried > 300, "the pages were asked"


def test_nonsense_in_a_form(
    console: Console, ours: Tenant, names_read: Callable[[Callable[[], Any]], list[str]]
) -> None:
    tried, failed = 0, []
    for form in actions_of(create_sample(console, ours)):
        client = client_of(ours.admin)  # Another one for each, since one of the forms signs out.
        for name in names_read(partial(asked, client, form)):
            for value in NONSENSE:
                tried += 1
                sent: Page = replace(form, data={**(form.data or {}), name: value})
                if asked(client, sent).status_code >= 500:
                    failed.append((form.path, name, value[:10]))
    assert failed == []
    assert tried > 500, "the forms were sent"
