"""A state of 50 MB is written, read and looked at, within a bounded amount of memory."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from django.conf import settings
from django.test import Client

from console.state.models import StateVersion
from tests.console.state.backend_client import lock_info, md5, state
from tests.console.state.documents import resource
from tests.console.state.served import served_console
from tests.people import Tenant

MEGABYTE = 1024 * 1024
#: A console that does nothing has about 100 MB.
MOST_BYTES = 800 * MEGABYTE


def large_state(serial: int, size: int) -> bytes:
    """As states grow: many resources with a few dozen attributes each."""
    attributes = {f"attribute_{number}": f"value {number} of something" for number in range(40)}
    one = len(json.dumps(resource("aws_thing.n0", attributes), indent=2))
    many = [
        resource(f"aws_thing.n{number}", {**attributes, "id": f"i-{number}"}) for number in range(size // one)
    ]
    return state(serial, resources=many)


def look_at_it(console: str, tenant: Tenant) -> None:
    """As a browser does: the list of versions, and one resource of tens of thousands."""
    session = Client()
    session.force_login(tenant.operator, backend="django.contrib.auth.backends.ModelBackend")
    name = settings.SESSION_COOKIE_NAME
    page = f"{console}/{tenant.organization.slug}/specs/{tenant.spec.slug}/state/"
    with httpx.Client(cookies={name: session.cookies[name].value}, timeout=60) as browser:
        versions = browser.get(page)
        assert versions.status_code == 200, versions.text
        page_found = browser.get(f"{page}1/", params={"q": "n12345"})
        assert page_found.status_code == 200, page_found.text
        assert "aws_thing.n12345" in page_found.text
        assert "aws_thing.n777" not in page_found.text


@pytest.mark.timeout(180)
def test_fifty_megabytes(background: object, ours: Tenant, tmp_path: Path) -> None:
    body = large_state(1, 50 * MEGABYTE)
    assert len(body) > 45 * MEGABYTE
    login = ("me", ours.token_of(ours.operator))
    with served_console(tmp_path / "console.log") as served:
        address = f"{served.address}/api/state/{ours.spec.pk}"
        with httpx.Client(auth=login, timeout=60) as client:
            assert client.request("LOCK", address, json=lock_info("a")).status_code == 200
            written = client.post(f"{address}?ID=a", content=body, headers={"Content-MD5": md5(body)})
            assert written.status_code == 200, written.text
            assert client.get(address).content == body
        look_at_it(served.address, ours)
        assert served.peak_bytes < MOST_BYTES
    version = StateVersion.objects.get(spec=ours.spec)
    assert version.size_bytes == len(body)
    assert len(version.sealed_body) < len(body) / 5
