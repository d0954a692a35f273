"""Terraform reaches its state through a relay, which is as patient as the lease allows, and no more."""

from __future__ import annotations

import os
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from runner import clock
from runner.terraform.relay import Relay
from tests.runner.fake_console import FOREIGN, TOO_LARGE, Foreign
from tests.runner.installation import free_port
from tests.waiting import wait_until


class StateServer(ThreadingHTTPServer):
    """A console as the relay sees it."""

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.requests: list[tuple[str, str, bytes, str]] = []
        self.status = 200
        self.instead: list[Foreign] = []
        self.broken_off: list[bytes] = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: StateServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append((self.command, self.path, body, self.headers.get("Authorization", "")))
        if self.server.broken_off:
            self.wfile.write(self.server.broken_off.pop(0))
            return
        # As the console does: nothing but a document has a body, and a save is answered without one.
        has_body = self.command == "GET" or self.server.status != 200
        answer = Foreign(self.server.status, b"{}" if has_body else b"", {"Content-Type": "application/json"})
        self._answer(self.server.instead.pop(0) if self.server.instead else answer)

    def _answer(self, answer: Foreign) -> None:
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Length": str(len(answer.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    do_POST = do_DELETE = do_GET  # noqa: N815 - the server's names


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def relay() -> Iterator[Relay]:
    relay = Relay(environ=os.environ, ca_file=None)
    yield relay
    relay.close()


@pytest.fixture
def state(relay: Relay, port: int) -> str:
    """Return the address of the state of the attempt `one`; its lock is beside it."""
    address = f"http://127.0.0.1:{port}/api/state/1"
    state, lock = relay.open(
        "one",
        address=address,
        lock_address=f"{address}/lock",
        patient_until=clock.now() + 60,
        ends_at=clock.now() + 90,
    )
    assert lock == lock_of(state)
    return state


def lock_of(state: str) -> str:
    return state.removesuffix("state") + "lock"


def ask(url: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
    request = urllib.request.Request(url, body, {"Authorization": "Basic abc"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read()


class Asking(threading.Thread):
    """A request of Terraform's that is under way."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._answers: list[tuple[int, bytes]] = []
        self.start()

    def run(self) -> None:
        self._answers.append(ask(self._url, "POST", b"{}"))

    def answer_within(self, seconds: float) -> tuple[int, bytes] | None:
        self.join(timeout=seconds)
        return self._answers[0] if self._answers else None


def test_requests_and_answers_pass_unchanged(state: str, port: int) -> None:
    server = StateServer(port)
    assert ask(state) == (200, b"{}")
    assert ask(f"{state}?ID=7", "POST", b"state") == (200, b"")
    assert ask(lock_of(state), "DELETE", b"lock") == (200, b"")
    server.status = 423
    assert ask(lock_of(state), "POST", b"lock") == (423, b"{}")
    assert server.requests == [
        ("GET", "/api/state/1", b"", "Basic abc"),
        ("POST", "/api/state/1?ID=7", b"state", "Basic abc"),
        ("DELETE", "/api/state/1/lock", b"lock", "Basic abc"),
        ("POST", "/api/state/1/lock", b"lock", "Basic abc"),
    ]
    server.shutdown()
    server.server_close()


def test_a_console_that_is_away_is_waited_for(state: str, port: int) -> None:
    asking = Asking(state)
    assert asking.answer_within(1) is None
    server = StateServer(port)
    assert asking.answer_within(30) == (200, b"")
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_page_of_a_proxy_is_neither_a_saved_state_nor_an_empty_one(
    state: str, port: int, method: str
) -> None:
    """Terraform takes any 200 for a save, follows redirects, and takes a 404 for an empty state."""
    server = StateServer(port)
    server.instead = [FOREIGN[name] for name in ("a page", "no such host", "a redirect")]
    if method == "POST":
        server.instead.append(Foreign(200, b"Back soon", {"Content-Type": "text/plain"}))
    foreign = len(server.instead)
    assert ask(state, method, b"state")[0] == 200
    assert len(server.requests) == foreign + 1
    assert {(method, body) for method, _, body, _ in server.requests} == {(method, b"state")}
    server.shutdown()
    server.server_close()


def test_a_proxy_that_takes_no_large_state_is_not_asked_again(state: str, port: int) -> None:
    """Terraform then writes its `errored.tfstate` at once, and names the status."""
    server = StateServer(port)
    server.instead = [TOO_LARGE]
    assert ask(state, "POST", b"state")[0] == 413
    assert len(server.requests) == 1
    server.shutdown()
    server.server_close()


BROKEN_OFF = {
    "in the body": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    "in a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{",
    "in the first line": b"HT",
    "before it": b"",
}


@pytest.mark.parametrize("begun", BROKEN_OFF.values(), ids=BROKEN_OFF)
def test_an_answer_that_breaks_off_is_asked_for_again(state: str, port: int, begun: bytes) -> None:
    """This is what a console does that is killed while it answers."""
    server = StateServer(port)
    server.broken_off = [begun]
    assert ask(state) == (200, b"{}")
    assert len(server.requests) == 2
    server.shutdown()
    server.server_close()


def test_a_404_of_the_consoles_own_is_passed_on(state: str, port: int) -> None:
    server = StateServer(port)
    server.status = 404
    assert ask(state) == (404, b"{}")
    server.shutdown()
    server.server_close()


def test_what_could_not_be_saved_is_refused_as_soon_as_the_lease_runs_out(relay: Relay, state: str) -> None:
    asking = Asking(state)
    assert asking.answer_within(0.5) is None
    relay.renew("one", patient_until=clock.now(), ends_at=clock.now() + 60)
    answer = asking.answer_within(30)
    assert answer is not None
    assert answer[0] == 502


def test_an_attempt_that_is_over_is_served_no_more(relay: Relay, state: str, port: int) -> None:
    server = StateServer(port)
    assert ask(state)[0] == 200
    relay.forget("one")
    wait_until(lambda: ask(state)[0] == 410, what="the refusal")
    server.shutdown()
    server.server_close()


def test_a_killed_relay_is_followed_by_another_at_the_same_address(
    relay: Relay, state: str, port: int
) -> None:
    server = StateServer(port)
    first = relay.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    asking = Asking(state)

    def renewed() -> bool:
        relay.renew("one", patient_until=clock.now() + 60, ends_at=clock.now() + 90)
        return relay.pid != first

    wait_until(renewed, what="a new relay")
    assert asking.answer_within(30) == (200, b"")
    server.shutdown()
    server.server_close()


def test_signals_do_not_end_the_relay_and_rest_does(relay: Relay, state: str) -> None:
    pid = relay.pid
    wait_until(lambda: _ignores(pid, signal.SIGHUP), what="the relay's start")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(pid or 0, number)
    relay.stop_when_idle()
    assert relay.pid == pid, "it has an attempt to serve"
    relay.forget("one")
    relay.stop_when_idle()
    assert relay.pid is None


def _ignores(pid: int | None, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line for line in status.splitlines() if line.startswith("SigIgn"))
    return bool(int(mask.split()[1], 16) >> (number - 1) & 1)
