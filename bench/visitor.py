"""A person with a session, as pages, sockets and browsers know one."""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass

from django.conf import settings
from django.test import Client

from bench.tenant import Tenant
from bench.wire_client import Console

TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class Visitor:
    """Picklable: viewers are in another process."""

    console: Console
    session: str

    @property
    def url(self) -> str:
        return f"http://{self.console.host}:{self.console.port}"

    @property
    def cookie(self) -> str:
        return f"{settings.SESSION_COOKIE_NAME}={self.session}"


def visitor(console: Console, tenant: Tenant) -> Visitor:
    client = Client()
    client.force_login(tenant.person, backend="django.contrib.auth.backends.ModelBackend")
    return Visitor(console, client.cookies[settings.SESSION_COOKIE_NAME].value)


class Reader:
    """Fetches pages over one connection, and tells how long each took until its last byte."""

    def __init__(self, visitor: Visitor) -> None:
        self._headers = {"Cookie": visitor.cookie, "Accept": "text/html"}
        self._connection = http.client.HTTPConnection(
            visitor.console.host, visitor.console.port, timeout=TIMEOUT_SECONDS
        )

    def milliseconds(self, address: str) -> float:
        began = time.perf_counter()
        self._connection.request("GET", address, headers=self._headers)
        answer = self._connection.getresponse()
        answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{address} was answered {answer.status}")
        return (time.perf_counter() - began) * 1_000
