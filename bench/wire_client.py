"""A bare runner: it speaks the wire protocol as cheaply as Python can, since the console is measured.

One connection of the standard library's client, and nothing is done with the jobs it gets.
"""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

TYPES = ["PLAN", "DEPLOY", "DESTROY"]
#: Longer than the console holds a claim request.
TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class Console:
    """The address of the console; picklable, since it travels to another process."""

    host: str
    port: int


@dataclass
class WireRunner:
    """One runner with one connection."""

    console: Console
    credential: str
    _connection: http.client.HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self._connection = http.client.HTTPConnection(
            self.console.host, self.console.port, timeout=TIMEOUT_SECONDS
        )

    def claim(self, *, wait_seconds: float = 0.0) -> dict[str, Any] | None:
        """The claim, or None when there is nothing to do."""
        body = {"claim_key": str(uuid4()), "types": TYPES, "wait_seconds": wait_seconds}
        answer: dict[str, Any] | None = self.send("POST", "/api/jobs/claim", json.dumps(body).encode())
        return answer

    def report(self, claim: dict[str, Any], status: str) -> None:
        body = {"claim_id": claim["claim_id"], "status": status}
        if status != "PROCESSING":
            body["result"] = {}
        self.send("PUT", f"/api/jobs/{claim['job_id']}/status", json.dumps(body).encode())

    def run_job(self, claim: dict[str, Any]) -> None:
        self.report(claim, "PROCESSING")
        self.report(claim, "SUCCESS")

    def send(self, method: str, path: str, body: bytes) -> Any:
        headers = {"Authorization": f"Bearer {self.credential}", "Content-Type": "application/json"}
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise RuntimeError(f"{method} {path} was answered {answer.status}: {text.decode()[:500]}")
        return json.loads(text) if text else None
