"""A page's view is where its address says: who knows the address knows the file."""

from pathlib import Path

import pytest
from django.urls import URLPattern, get_resolver

from console.pages.rail import ORGANIZATION

PAGES = Path("console/pages")
SPEC = "specs/<slug:spec_slug>/"
#: Addresses that share the file of another one.
SHARED = {
    "": "frame",
    "sign-out": "sign_in",
    ORGANIZATION: "dashboard",
    f"{ORGANIZATION}running": "dashboard",
    f"{ORGANIZATION}{SPEC}add-variable": "specs/variables",
    f"{ORGANIZATION}{SPEC}unarchive": "specs/archive",
}


def file_of(route: str) -> str:
    """The file in which the view of an address must stand, below `console/pages/`."""
    if route in SHARED:
        return SHARED[route]
    address = route.removeprefix(ORGANIZATION)
    if address.startswith(SPEC):
        word = first_word(address.removeprefix(SPEC))
        return f"specs/{word}" if (PAGES / f"specs/{word}.py").exists() else "specs/spec"
    if address.startswith("specs/"):
        return f"specs/{first_word(address.removeprefix('specs/')) or 'listing'}"
    return first_word(address)


def first_word(address: str) -> str:
    return address.partition("/")[0].replace("-", "_")


def page_addresses() -> list[URLPattern]:
    patterns = get_resolver("console.pages.urls").url_patterns
    return [pattern for pattern in patterns if isinstance(pattern, URLPattern)]


@pytest.mark.parametrize("pattern", page_addresses(), ids=lambda pattern: str(pattern.pattern) or "/")
def test_a_view_is_in_the_file_of_its_addresss_first_word(pattern: URLPattern) -> None:
    assert pattern.callback is not None
    module = pattern.callback.__module__.removeprefix("console.pages.").replace(".", "/")
    assert module == file_of(str(pattern.pattern))
