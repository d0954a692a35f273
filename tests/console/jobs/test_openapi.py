"""The OpenAPI document: generated without a warning, and it names every address of the API."""

from __future__ import annotations

import re

import pytest
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator

from console import urls_api
from tests.console_app import Console
from tests.people import Tenant


def test_it_is_generated_without_a_warning() -> None:
    GENERATOR_STATS.reset()
    with GENERATOR_STATS.silence():
        SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    assert not GENERATOR_STATS._warn_cache
    assert not GENERATOR_STATS._error_cache


def test_it_has_every_address(console: Console, ours: Tenant) -> None:
    answer = console.person(ours, "viewer").get("/api/openapi")
    assert answer.status_code == 200
    described = answer.text
    for pattern in urls_api.urlpatterns:
        if pattern.name != "api-openapi":
            path = "/api/" + re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern))
            assert path in described, f"{path} is not described"


@pytest.mark.parametrize("header", ["Idempotency-Key"])
def test_it_tells_of_the_header_that_makes_a_repeat_safe(console: Console, ours: Tenant, header: str) -> None:
    assert header in console.person(ours, "viewer").get("/api/openapi").text


def test_it_offers_the_types_that_can_be_requested_on_a_spec() -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    schemas = schema["components"]["schemas"]
    assert schemas["JobRequest"]["properties"]["type"]["$ref"].endswith("/RequestableJobTypeEnum")
    assert schemas["RequestableJobTypeEnum"]["enum"] == ["PLAN", "DESTROY"]


def test_it_says_how_a_state_is_answered() -> None:
    """A runner tells the console's answers from a proxy's by that."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    state = schema["paths"]["/api/state/{spec_id}"]
    assert state["get"]["responses"].keys() == {"200", "204", "default"}
    assert "content" not in state["post"]["responses"]["200"]
