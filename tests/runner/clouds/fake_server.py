"""The HTTP server of the suite's fake clouds: tests configure it, and read the requests that it got."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: The address at which a test configures a process (PUT) and reads its requests (GET).
SUITE = "/suite"

Answer = tuple[int, dict[str, str], bytes]


class Behaviour:
    """The settings of a process, and the requests that it got."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.settings: dict[str, Any] = {}
        self.requests: list[dict[str, Any]] = []

    def configure(self, document: dict[str, Any]) -> None:
        with self.lock:
            self.settings.update(document)
            if document.get("forget"):
                self.settings, self.requests = {}, []

    def record(self, **facts: Any) -> None:
        with self.lock:
            self.requests.append(facts)

    def take(self, name: str, key: str) -> bool:
        """Count down a number of times that something is to happen; returns False when none remains."""
        with self.lock:
            remaining = self.settings.get(name, {}).get(key, 0)
            if remaining:
                self.settings[name][key] = remaining - 1
            return bool(remaining)


class Handler(BaseHTTPRequestHandler):
    """One process's requests; `handle_request` is the process's own."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    behaviour: Behaviour

    def handle_request(self, body: bytes) -> Answer:
        raise NotImplementedError

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        body = self._body()
        if self.path == SUITE:
            answer = self._suite(body)
        else:
            answer = self.handle_request(body)
        self._answer(*answer)

    do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_GET  # noqa: N815 - the server's names

    def _suite(self, body: bytes) -> Answer:
        if self.command == "PUT":
            self.behaviour.configure(json.loads(body))
        return as_json(200, self.behaviour.requests)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response(status)
        own_length = self.command == "HEAD"
        for name, value in headers.items():
            if name.lower() not in ("transfer-encoding", "connection") and (
                own_length or name.lower() != "content-length"
            ):
                self.send_header(name, value)
        if not own_length:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(OSError):  # the client did not wait
                self.wfile.write(content)


def as_json(status: int, document: Any) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(document).encode()


def forward(
    handler: Handler, port: int, body: bytes, *, headers: Mapping[str, str] | None = None, tls: bool = False
) -> Answer:
    """Return the emulator's answer to the request, which stays as it was signed."""
    if tls:
        there: http.client.HTTPConnection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=30, context=ssl._create_unverified_context()
        )
    else:
        there = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    sent = dict(headers if headers is not None else handler.headers.items())
    sent = {name: value for name, value in sent.items() if name.lower() != "transfer-encoding"}
    sent["Content-Length"] = str(len(body))
    try:
        there.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            there.putheader(name, value)
        there.endheaders(body)
        answer = there.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        there.close()


def serve(handler: type[Handler], *, certificate: str = "", key: str = "") -> None:
    """Serve on the socket that was inherited as descriptor 0, until the process is ended."""
    handler.behaviour = Behaviour()
    listening = socket.socket(fileno=os.dup(sys.stdin.fileno()))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler, bind_and_activate=False)
    server.daemon_threads = True
    server.socket.close()
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        listening = context.wrap_socket(listening, server_side=True)
    server.socket = listening
    server.serve_forever()
