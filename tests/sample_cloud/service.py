"""A tiny HTTP cloud: it makes servers, slowly if told to, refuses them if told to, and writes a journal."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.waiting import wait_until


@dataclass(frozen=True)
class Entry:
    """One line of the journal."""

    action: str
    name: str


@dataclass
class Cloud:
    """The servers that exist, a journal of all actions, and settings for the cloud's behaviour.

    A server exists from the moment its creation is asked for; `latency` is how long the answer takes. So a
    provider that is killed while it waits has made something that no state knows.
    """

    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    journal: list[Entry] = field(default_factory=list)
    #: Seconds until a creation is answered, by the server's name; other servers are there at once.
    latency: dict[str, float] = field(default_factory=dict)
    #: How many more creations of a name are refused.
    failures: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.cloud = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Cloud:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def names(self) -> list[str]:
        """The servers that exist, by name; a name that is there twice was made twice."""
        with self._lock:
            return sorted(str(server["name"]) for server in self.servers.values())

    def done(self, action: str) -> list[str]:
        """The names that an action was ever done to, in order."""
        with self._lock:
            return [entry.name for entry in self.journal if entry.action == action]

    def wait_for(self, action: str, name: str, *, seconds: float = 60) -> None:
        wait_until(lambda: name in self.done(action), seconds=seconds, what=f"{action} of {name}")

    def drift(self, name: str, **changes: Any) -> None:
        """Somebody changes a server by hand."""
        self._find(name).update(changes)

    def lose(self, name: str) -> None:
        """Somebody deletes a server by hand."""
        identity = str(self._find(name)["id"])
        with self._lock:
            del self.servers[identity]

    def _find(self, name: str) -> dict[str, Any]:
        with self._lock:
            return next(server for server in self.servers.values() if server["name"] == name)

    # The handler calls these.

    def create(self, attributes: dict[str, Any]) -> dict[str, Any] | None:
        name = str(attributes["name"])
        with self._lock:
            if self.failures.get(name, 0):
                self.failures[name] -= 1
                return None
            server = {**attributes, "id": f"srv-{len(self.journal) + 1}"}
            self.servers[server["id"]] = server
            self.journal.append(Entry("create", name))
        self._closing.wait(self.latency.get(name, 0.0))
        return server

    def read(self, identity: str) -> dict[str, Any] | None:
        with self._lock:
            return self.servers.get(identity)

    def update(self, identity: str, attributes: dict[str, Any]) -> dict[str, Any] | None:
        with self._lock:
            server = self.servers.get(identity)
            if server is not None:
                server.update(attributes)
                self.journal.append(Entry("update", str(server["name"])))
            return server

    def delete(self, identity: str) -> None:
        with self._lock:
            server = self.servers.pop(identity, None)
            if server is not None:
                self.journal.append(Entry("delete", str(server["name"])))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    cloud: Cloud


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        server = self.server.cloud.create(self._body())
        self._answer(server, otherwise=503)

    def do_GET(self) -> None:
        self._answer(self.server.cloud.read(self._identity()), otherwise=404)

    def do_PUT(self) -> None:
        self._answer(self.server.cloud.update(self._identity(), self._body()), otherwise=404)

    def do_DELETE(self) -> None:
        self.server.cloud.delete(self._identity())
        self._answer({}, otherwise=404)

    def _identity(self) -> str:
        return self.path.rpartition("/")[2]

    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return body

    def _answer(self, server: dict[str, Any] | None, *, otherwise: int) -> None:
        content = json.dumps(server or {}).encode()
        try:
            self.send_response(otherwise if server is None else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            self.close_connection = True  # the provider was killed meanwhile
