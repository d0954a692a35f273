"""The console as `slipway up` starts it, in a process of its own."""

from __future__ import annotations

import contextlib
import http.client
import signal
import sys
import time
from collections.abc import Iterator

from bench.site import Site
from bench.wire_client import Console
from console.local.supervisor import Service
from console.local.up import Address, free_address

START_SECONDS = 60.0
STOP_SECONDS = 10.0


@contextlib.contextmanager
def running_console(site: Site) -> Iterator[Console]:
    address = free_address("127.0.0.1", 0)
    listen = ["--host", address.host, "--port", str(address.port)]
    service = Service(
        name="console",
        command=[sys.executable, "-P", "-m", "console.local.serve", *listen],
        environment=lambda: site.environment | {"SLIPWAY_PUBLIC_URL": address.url},
        log_file=site.folder / "console.log",
        stop_seconds=STOP_SECONDS,
    )
    service.start()
    try:
        _wait_until_it_answers(service, address)
        yield Console(address.host, address.port)
    finally:
        service.signal(signal.SIGTERM)
        if service.process is not None:
            service.process.wait(STOP_SECONDS)


def _wait_until_it_answers(service: Service, address: Address) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _answers(address):
        if not service.is_running or time.monotonic() > deadline:
            raise RuntimeError(f"The console did not start:\n{service.log_file.read_text()[-2000:]}")
        time.sleep(0.1)


def _answers(address: Address) -> bool:
    connection = http.client.HTTPConnection(address.host, address.port, timeout=2)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()
