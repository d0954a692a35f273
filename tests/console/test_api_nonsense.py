"""Every address of the API's own document with nonsense in each of its places: refused, never a failure."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from console.accounts.services import create_api_token
from tests.console.pages.sample_organization import Sample, create_sample
from tests.console_app import Console
from tests.people import Tenant

QUERY = ["%00", "9" * 5_000, "9" * 18, "-1", "x" * 5_000, "9999-12-31", "%C2%B2", "%FF"]
VALUES: list[Any] = [
    *("\x00", "9" * 5_000, "x" * 70_000, "\ud800", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"),
    *(10**400, 10**18, -1, 1.5e308, None, True, [], {}, ["\x00"], {"\x00": 1}, {"a": {"b": [None]}}),
]
BODIES = [b"", b"{", b"\xff", b"[" * 100_000, b"null", b"[]", b'"x"', b'{"\\u0000": 1}', b'{"a": NaN}']


def test_nonsense_in_the_api(console: Console, ours: Tenant) -> None:
    made = create_sample(console, ours)
    _, token = create_api_token(user=ours.admin, organization=ours.organization, name="nonsense")
    client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {token}"})
    statuses, failed = [], []
    for method, path, body in requests_of(made):
        with transaction.atomic():
            answer = client.generic(method.upper(), path, body, content_type="application/json")
            transaction.set_rollback(True)
        statuses.append(answer.status_code)
        if answer.status_code >= 500:
            failed.append((method, path[:100], body[:200]))
    assert failed == []
    assert statuses.count(400) > 1_000, "it was asked with nonsense"
    assert statuses.count(200) > 30, "it was asked as somebody who may"


def requests_of(made: Sample) -> Iterator[tuple[str, str, bytes]]:
    """Method, address and body: each operation as it should be, and then with one thing wrong at a time."""
    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    for path, operations in document["paths"].items():
        address = path.format_map(names_in_addresses(made))
        for method, operation in operations.items():
            yield method, address, b""
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "query":
                    yield from ((method, f"{address}?{parameter['name']}={value}", b"") for value in QUERY)
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content:
                yield from ((method, address, body) for body in BODIES)
                right = example(content["schema"], document["components"]["schemas"], made)
                yield from ((method, address, json.dumps(body).encode()) for body in spoiled(right))


def names_in_addresses(made: Sample) -> dict[str, Any]:
    return {
        "job_id": made.plan.job_id,
        "claim_id": made.plan.job_id,
        "spec_id": made.spec.pk,
        "plan_id": made.plan.pk,
        "runner_id": made.runner.pk,
        "identity_id": made.identity.pk,
        "slug": made.tenant.organization.slug,
        "spec_slug": made.spec.slug,
        "name": "zones",
        "number": 1,
        "serial": 1,
    }


def example(schema: dict[str, Any], schemas: dict[str, Any], made: Sample, name: str = "") -> Any:
    """A value of that shape, near enough to be read up to the place that is spoiled."""
    while "$ref" in schema or "allOf" in schema or "oneOf" in schema:
        choices = schema.get("allOf") or schema.get("oneOf") or [schema]
        schema = schemas[choices[0]["$ref"].rpartition("/")[2]] if "$ref" in choices[0] else choices[0]
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            inside = schema.get("properties", {})
            return {key: example(one, schemas, made, key) for key, one in inside.items()} or {"key": "text"}
        case "array":
            return [example(schema["items"], schemas, made, name)]
        case "integer" | "number":
            return 1
        case "boolean":
            return False
    known = {"organization": made.tenant.organization.slug, "spec": str(made.spec.pk), "pool": "default"}
    return known.get(name, "text")


def spoiled(value: Any) -> Iterator[Any]:
    yield value
    for place in places_in(value):
        for other in VALUES:
            body = copy.deepcopy(value)
            inside = body
            for key in place[:-1]:
                inside = inside[key]
            inside[place[-1]] = other
            yield body


def places_in(value: Any) -> Iterator[tuple[Any, ...]]:
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield (key,)
        yield from ((key, *deeper) for deeper in places_in(value[key]))
