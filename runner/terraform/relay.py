"""The relay: a small process beside the runner through which Terraform reaches its state.

Terraform gives a save of its state up after three seconds without an answer, and then halts an apply that is
under way. The relay waits for a console that is away for as long as the attempt's lease allows, and says no
right after that, so that Terraform still has the time to write its `errored.tfstate`. It is a process of its
own because Terraform must be able to save its state when the runner has been killed.

This file is run by its path, with the standard library only, and imports nothing of the runner.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

#: The headers of requests that the console needs, and those of answers that Terraform needs.
_REQUEST_HEADERS = ("Authorization", "Content-Type", "Content-MD5")
_ANSWER_HEADERS = ("Content-Type", "Content-MD5")
#: The variables of the runner's environment that lead the relay to the console.
_PASSED = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")

_PAUSE_SECONDS = 0.5
#: For one try; a console that accepts connections and says nothing is away as well.
_TRY_SECONDS = 10.0
#: For a try after the patience has ended.
_LAST_TRY_SECONDS = 2.0
#: The longest that one request is repeated while leases are renewed: then the console is there, and something
#: else is wrong with it that waiting does not cure.
_LONGEST_SECONDS = 60.0

#: Python's errors for an answer that does not come or breaks off, also from `http.client` and `ssl`.
CUT_OFF = (OSError, ValueError, http.client.HTTPException)
#: The relay is on this machine, whatever proxies lead elsewhere.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Relay:
    """The runner's side: starts the process when there is work, and tells it how long to be patient."""

    def __init__(self, *, environ: Mapping[str, str], ca_file: Path | None) -> None:
        self._environ = {name: value for name, value in environ.items() if name.upper() in _PASSED}
        self._ca_file = str(ca_file or "")
        self._attempts: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._listening: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def open(
        self, marker: str, *, address: str, lock_address: str, patient_until: float, ends_at: float
    ) -> tuple[str, str]:
        """Serve an attempt; returns the addresses of its state and of its lock for Terraform."""
        facts = {"address": address, "lock_address": lock_address}
        with self._lock:
            self._attempts[marker] = facts | {"patient_until": patient_until, "ends_at": ends_at}
            if self._process is None or self._process.poll() is not None:
                self._start()
            self._send_or_restart({"marker": marker, **self._attempts[marker]})
            assert self._listening is not None
            url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/{marker}"
        return f"{url}/state", f"{url}/lock"

    def renew(self, marker: str, *, patient_until: float, ends_at: float) -> None:
        with self._lock:
            if marker in self._attempts:
                self._attempts[marker] |= {"patient_until": patient_until, "ends_at": ends_at}
                self._send_or_restart({"marker": marker, **self._attempts[marker]})

    def forget(self, marker: str) -> None:
        with self._lock:
            if self._attempts.pop(marker, None):
                self._send_or_restart({"marker": marker, "forget": True})

    def unsaved(self, marker: str) -> bytes | None:
        """Return the last state that Terraform tried to save in vain, which may be on no disk."""
        with self._lock:
            port = self._listening.getsockname()[1] if self._listening else 0
        try:
            with DIRECT.open(f"http://127.0.0.1:{port}/{marker}/unsaved", timeout=_TRY_SECONDS) as answer:
                return bytes(answer.read()) or None
        except CUT_OFF:
            return None

    def stop_when_idle(self) -> None:
        """Stop the process while there is no attempt; the next job starts it again."""
        with self._lock:
            if not self._attempts:
                self._end()

    def close(self) -> None:
        with self._lock:
            self._end()

    def _start(self) -> None:
        """Start the process without waiting: early connections wait in the socket's queue."""
        self._end_process()
        # Kept here, so that a relay that was killed is followed by one at the same address.
        self._listening = self._listening or socket.create_server(("127.0.0.1", 0))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(self._listening.fileno()), self._ca_file],
            stdin=subprocess.PIPE,
            bufsize=0,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._environ,
            cwd="/",
            # Its own session: what ends Terraform's group or the runner's must not end the relay first.
            start_new_session=True,
            pass_fds=[self._listening.fileno()],
        )

    def _end(self) -> None:
        self._end_process()
        if self._listening:
            self._listening.close()
            self._listening = None

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process and process.stdin:
            process.kill()
            process.stdin.close()
            process.wait()

    def _send_or_restart(self, message: dict[str, Any]) -> None:
        try:
            self._send(message)
        except OSError:  # The relay was killed: a new one gets everything again.
            self._start()
            for marker, facts in self._attempts.items():
                self._send({"marker": marker, **facts})

    def _send(self, message: dict[str, Any]) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listening: socket.socket, *, ca_file: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.opener = _opener(ca_file)
        self._attempts: dict[str, dict[str, Any]] = {}
        #: By marker, the states on their way to the console, or that did not arrive there.
        self.unsaved: dict[str, bytes] = {}
        self._updated = threading.Condition()

    def follow(self, message: dict[str, Any]) -> None:
        marker = message.pop("marker")
        with self._updated:
            if message.get("forget"):
                self._attempts.pop(marker, None)
                self.unsaved.pop(marker, None)
            else:
                self._attempts[marker] = message | {"renewed_at": _now()}
            self._updated.notify_all()

    def facts(self, marker: str) -> dict[str, Any] | None:
        """Return the facts of an attempt; wait for them, since Terraform may be quicker than the runner."""
        with self._updated:
            self._updated.wait_for(lambda: marker in self._attempts, timeout=_TRY_SECONDS)
            return self._attempts.get(marker)

    def is_patient(self, marker: str, *, since: float) -> bool:
        facts, moment = self._attempts.get(marker), _now()
        if facts is None or moment >= facts["patient_until"]:
            return False
        # Without a renewal since the request came, the console is away, and only the lease counts.
        return bool(facts["renewed_at"] < since or moment < since + _LONGEST_SECONDS)

    def try_seconds(self, marker: str) -> float:
        """Return the longest wait for one answer: Terraform needs the rest of the lease itself."""
        facts = self._attempts.get(marker)
        remaining = facts["patient_until"] - _now() if facts else 0.0
        return min(_TRY_SECONDS, max(_LAST_TRY_SECONDS, remaining))

    @property
    def ends_at(self) -> float:
        """The end of the last lease."""
        with self._updated:
            return max((facts["ends_at"] for facts in self._attempts.values()), default=0.0)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, headers, content = self._forward(body)
        self.send_response(status)
        for name in _ANSWER_HEADERS:
            if headers.get(name):
                self.send_header(name, headers[name])
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_DELETE = do_GET  # noqa: N815 - the server's names

    def _forward(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Forward a request. Each can be repeated: the console recognises a repeated save or lock."""
        marker, _, what = self.path.partition("?")[0].strip("/").partition("/")
        facts = self.server.facts(marker)
        if facts is None:
            return HTTPStatus.GONE, {}, b"This attempt is over."
        if what == "unsaved":
            return HTTPStatus.OK, {}, self.server.unsaved.get(marker, b"")
        if what == "state" and self.command == "POST":
            return self._save(facts["address"], marker, body)
        return self._forward_to(facts["lock_address" if what == "lock" else "address"], marker, body)

    def _save(self, address: str, marker: str, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        self.server.unsaved[marker] = body
        answer = self._forward_to(address, marker, body)
        if answer[0] < HTTPStatus.MULTIPLE_CHOICES:
            self.server.unsaved.pop(marker, None)
        return answer

    def _forward_to(self, address: str, marker: str, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        target = self._target(address)
        began = _now()
        while True:
            status, headers, content = self._try(target, body, seconds=self.server.try_seconds(marker))
            is_away = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
            if not is_away or not self.server.is_patient(marker, since=began):
                return status, headers, content
            time.sleep(_PAUSE_SECONDS)

    def _target(self, address: str) -> str:
        query = self.path.partition("?")[2]
        return f"{address}?{query}" if query else address

    def _try(self, target: str, body: bytes, *, seconds: float) -> tuple[int, Mapping[str, str], bytes]:
        headers = {name: self.headers[name] for name in _REQUEST_HEADERS if self.headers.get(name)}
        request = urllib.request.Request(  # noqa: S310 - the console's own address
            target, data=body or None, headers=headers, method=self.command
        )
        try:
            with self.server.opener.open(request, timeout=seconds) as answer:
                return _require_console(self.command, answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return _require_console(self.command, refusal.code, refusal.headers, refusal.read())
        except (*CUT_OFF, EOFError) as error:
            return HTTPStatus.BAD_GATEWAY, {}, f"The console does not answer: {error}".encode()


def _require_console(
    method: str, status: int, headers: Message, content: bytes
) -> tuple[int, Mapping[str, str], bytes]:
    """Return the answer, unless it came from something in front of the console, such as a proxy.

    Terraform would take such a page for a saved state, and a 404 for an empty one; the console answers a save
    with no body, an empty state with 204, and a refusal with a problem document.
    """
    kind = headers.get("Content-Type") or ""
    is_page = bool(content) and (kind.startswith("text/html") or (method != "GET" and status < 300))
    is_elsewhere = 300 <= status < 400
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:  # A repeat would get the same answer.
        return status, {}, content
    is_unknown = status == HTTPStatus.NOT_FOUND and "json" not in kind
    if is_page or is_elsewhere or is_unknown:
        return HTTPStatus.BAD_GATEWAY, {}, f"Something else than the console answers: HTTP {status}".encode()
    return status, dict(headers), content


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuse redirects: the console sends none, and a redirected save would become a read."""

    def redirect_request(self, *request: Any) -> None:
        return None


def _opener(ca_file: str) -> urllib.request.OpenerDirector:
    if not ca_file:
        return urllib.request.build_opener(_NoRedirects)
    context = ssl.create_default_context(cafile=ca_file)
    return urllib.request.build_opener(_NoRedirects, urllib.request.HTTPSHandler(context=context))


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    server = _Server(socket.socket(fileno=int(sys.argv[1])), ca_file=sys.argv[2])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _follow_runner(server)
    # The runner is dead. The watchdog interrupts Terraform, which saves its state now, and ends this process.
    while _now() < server.ends_at:
        time.sleep(_PAUSE_SECONDS)


def _follow_runner(server: _Server) -> None:
    """Apply the runner's messages until the pipe closes."""
    rest = b""
    while received := os.read(0, 65536):
        *lines, rest = (rest + received).split(b"\n")
        for line in lines:
            server.follow(json.loads(line))


if __name__ == "__main__":
    main()
