"""The runner's client says the golden requests, and understands the golden answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from runner import protocol
from runner.client import ConsoleClient
from runner.protocol import from_wire
from tests.protocol.golden_messages import golden

JOB, CLAIM = golden("Claim")["job_id"], golden("Claim")["claim_id"]

#: Address, golden request, golden answer, and how the client is asked to send it.
Exchange = tuple[str, str, str, Callable[[ConsoleClient, Any], Any]]
EXCHANGES: list[Exchange] = [
    ("POST /api/runners/register", "RegistrationRequest", "RegistrationAnswer",
     lambda client, message: client.register(message, give_up=lambda: True)),
    ("POST /api/runners/hello", "RunnerFacts", "HelloAnswer",
     lambda client, message: client.hello(message, give_up=lambda: True)),
    ("POST /api/jobs/claim", "ClaimRequest", "Claim",
     lambda client, message: client.claim(message, give_up=lambda: True)),
    (f"POST /api/jobs/{JOB}/heartbeat", "HeartbeatRequest", "HeartbeatAnswer",
     lambda client, message: client.heartbeat(JOB, message, timeout=5)),
    (f"PUT /api/jobs/{JOB}/status", "StatusReport", "StatusAnswer",
     lambda client, message: client.report(JOB, message, give_up=lambda: True)),
    (f"POST /api/jobs/{JOB}/logs", "LogBatch", "LogAnswer",
     lambda client, message: client.append_log(
         JOB, CLAIM, message.first_seq,
         [json.dumps(protocol.to_wire(line)).encode() for line in message.lines], give_up=lambda: True)),
]  # fmt: skip


class Listener(ThreadingHTTPServer):
    """Answers what it was told, and remembers what it heard."""

    answer: dict[str, Any]
    heard: tuple[str, Any, str]


class _Handler(BaseHTTPRequestHandler):
    server: Listener

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.heard = (
            f"{self.command} {self.path}",
            json.loads(body) if body else None,
            self.headers.get("Authorization", ""),
        )
        content = json.dumps(self.server.answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_PUT = do_POST  # noqa: N815 - the server's name


@pytest.fixture
def listener() -> Iterator[Listener]:
    server = Listener(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def client(listener: Listener) -> Iterator[ConsoleClient]:
    client = ConsoleClient(
        console_url=f"http://127.0.0.1:{listener.server_address[1]}", credential="slr_example"
    )
    yield client
    client.close()


@pytest.mark.parametrize("exchange", EXCHANGES, ids=[exchange[1] for exchange in EXCHANGES])
def test_the_client_speaks_the_golden_messages(
    listener: Listener, client: ConsoleClient, exchange: Exchange
) -> None:
    address, request, answer_name, send = exchange
    listener.answer = golden(answer_name)
    answer = send(client, from_wire(getattr(protocol, request), golden(request)))
    assert listener.heard == (address, golden(request), "Bearer slr_example")
    assert answer == from_wire(getattr(protocol, answer_name), golden(answer_name))


def test_a_new_credential_is_asked_for_with_the_old_one(listener: Listener, client: ConsoleClient) -> None:
    listener.answer = golden("RotationAnswer")
    assert client.rotate().credential == "slr_another"
    assert listener.heard == ("POST /api/runners/rotate", None, "Bearer slr_example")


def test_a_goodbye_is_said_as_it_is_written_down(listener: Listener, client: ConsoleClient) -> None:
    listener.answer = {}
    client.goodbye(from_wire(protocol.Goodbye, golden("Goodbye")), timeout=5)
    assert listener.heard == ("POST /api/runners/goodbye", golden("Goodbye"), "Bearer slr_example")
