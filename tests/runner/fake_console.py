"""A console for the runner's tests: a real HTTP server that plays the protocol and records what it hears.

It keeps everything in memory, and can be told to misbehave: to be away, or to lose its answers.
"""

from __future__ import annotations

import base64
import dataclasses
import email
import email.policy
import hashlib
import json
import re
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from runner.protocol import (
    EMPTY_CHAIN,
    FINAL_STATUSES,
    Claim,
    ClaimRequest,
    FoundResources,
    Goodbye,
    HeartbeatRequest,
    IdentityTokenAnswer,
    JobType,
    LogBatch,
    LogReceipt,
    PlanReference,
    RegistrationRequest,
    RunnerFacts,
    StateAccess,
    StatusReport,
    extend_chain,
    from_wire,
    to_wire,
)
from tests.waiting import wait_until

TOKEN = "slt_one-use"
CREDENTIAL = "slr_the-credential-of-the-suite"
#: The token that an attempt shows to the cloud of its identity.
IDENTITY_TOKEN = "the-identity-token-of-the-suite"


@dataclasses.dataclass
class FakePlan:
    plan_id: str
    file: bytes
    document: dict[str, Any]
    lock: str
    fingerprint: dict[str, Any]
    snapshot_hash: str

    def reference(self) -> PlanReference:
        return PlanReference(
            plan_id=self.plan_id,
            file_sha256=hashlib.sha256(self.file).hexdigest(),
            snapshot_hash=self.snapshot_hash,
            state_lineage=self.fingerprint["state_lineage"],
            state_serial=self.fingerprint["state_serial"],
            provider_lock=self.lock,
            provider_lock_sha256=self.fingerprint["provider_lock_sha256"],
            terraform_version=self.fingerprint["terraform_version"],
        )


@dataclasses.dataclass
class FakeJob:
    claim: Claim
    plan: FakePlan | None = None
    claim_key: str = ""
    stale: bool = False
    cancel: str | None = None
    heartbeats: int = 0
    reports: list[StatusReport] = dataclasses.field(default_factory=list)
    lines: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    chain: str = EMPTY_CHAIN
    before_last_batch: tuple[int, str] = (0, EMPTY_CHAIN)
    uploaded: FakePlan | None = None
    resources: list[FoundResources] = dataclasses.field(default_factory=list)
    log_limit: int = 10**9

    @property
    def statuses(self) -> list[str]:
        return [report.status for report in self.reports]

    @property
    def messages(self) -> list[str]:
        return [line["message"] for line in self.lines]

    @property
    def text(self) -> str:
        """Return the log and the reports of this job, except outputs that the console encrypts unread."""
        reports = [dataclasses.replace(report, sensitive_outputs=None) for report in self.reports]
        return json.dumps([self.lines, [to_wire(report) for report in reports]])

    @property
    def final(self) -> StatusReport | None:
        return next((report for report in self.reports if report.status in FINAL_STATUSES), None)

    @property
    def receipt(self) -> LogReceipt:
        return LogReceipt(next_seq=len(self.lines) + 1, chain=self.chain)

    def data(self, kind: str) -> list[dict[str, Any]]:
        return [line["data"] for line in self.lines if (line.get("data") or {}).get("kind") == kind]

    def says(self, text: str) -> bool:
        return any(text in message for message in self.messages)

    def wait_for(self, text: str, *, seconds: float = 60) -> None:
        wait_until(lambda: self.says(text), seconds=seconds, what=f"a log line with {text!r}")

    def wait_for_end(self, *, seconds: float = 60) -> StatusReport:
        wait_until(lambda: self.final, seconds=seconds, what="the final report")
        assert self.final is not None
        return self.final


@dataclasses.dataclass(frozen=True)
class Foreign:
    """An answer of something in front of the console, in its place."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = dataclasses.field(default_factory=dict)


_PAGE = {"Content-Type": "text/html; charset=utf-8"}

#: The answers of proxies, ingresses and sign-in pages while the console behind them is replaced.
FOREIGN = {
    "a page": Foreign(200, b"<html>Back soon</html>", _PAGE),
    "no such host": Foreign(404, b"default backend - 404", {"Content-Type": "text/plain"}),
    "a redirect": Foreign(302, b"", {"Location": "https://login.example.com/"}),
    "an authorization": Foreign(401, b"<html>401</html>", _PAGE),
    "an error": Foreign(502, b"<html>Bad gateway</html>", _PAGE),
    "half an answer": Foreign(200, b'{"job_id": "0'),
    "what cannot be unpacked": Foreign(200, b"{}", {"Content-Encoding": "gzip"}),
    "what is nested without end": Foreign(200, b"[" * 100_000),
}
#: The answer of a proxy that will not change its mind.
TOO_LARGE = Foreign(413, b"<html>Request entity too large</html>", _PAGE)


class Problem(Exception):
    def __init__(self, status: int, code: str, **extra: Any) -> None:
        super().__init__(code)
        self.status = status
        self.document = {"type": "about:blank", "title": code, "status": status, "code": code, **extra}


class FakeConsole:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.jobs: list[FakeJob] = []
        self.tokens = {TOKEN}
        self.credentials = {CREDENTIAL}
        self.registrations: list[RegistrationRequest] = []
        self.facts: list[RunnerFacts] = []
        self.goodbyes: list[Goodbye] = []
        #: The answer to the next goodbye, which an older console does not know.
        self.goodbye_status = 200
        self.answers_goodbyes = threading.Event()
        self.answers_goodbyes.set()
        self.clock_ahead = timedelta()
        self.holds_seconds = 2.0
        self.claim_keys: list[str] = []
        self.pools_asked_for: list[list[str]] = []
        self.drain = False
        self.states: dict[str, bytes] = {}
        self.state_locks: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.unanswered = 0
        self.refused_state_writes = 0
        self.errored_states: dict[str, bytes] = {}
        self.refuses_errored_states = False
        self._away = False
        self._lose: list[tuple[re.Pattern[str], int]] = []
        self._instead: list[tuple[re.Pattern[str], Foreign]] = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.console = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._away = True
        self.answers_goodbyes.set()
        self._server.shutdown()
        self._server.server_close()

    def enqueue(
        self,
        type: JobType,
        files: dict[str, str] | None = None,
        *,
        variables: dict[str, Any] | None = None,
        sensitive: list[str] | None = None,
        environment: dict[str, str] | None = None,
        plan: FakePlan | None = None,
        spec: str = "demo",
        lease_seconds: int = 60,
        timeout_seconds: int = 600,
        log_limit: int = 10**9,
        **changes: Any,
    ) -> FakeJob:
        """Queue a job; `changes` replace fields of its claim."""
        number = len(self.jobs) + 1
        job_id = str(uuid.uuid4())
        snapshot = {"format": 1, "files": files or {}, "terraform_version": None}
        claim = Claim(
            job_id=job_id,
            job_number=number,
            type=type,
            claim_id=str(uuid.uuid4()),
            attempt=1,
            lease_seconds=lease_seconds,
            timeout_seconds=timeout_seconds,
            next_log_seq=1,
            organization="acme",
            spec_id=spec,
            spec=spec,
            snapshot=snapshot,
            snapshot_hash=hashlib.sha256(json.dumps(snapshot).encode()).hexdigest(),
            variables=variables or {},
            environment=environment or {},
            sensitive_variables=sensitive or [],
            state=StateAccess(
                address=f"{self.url}/state/{spec}",
                lock_address=f"{self.url}/state/{spec}/lock",
                username=job_id,
                password=f"state-password-{job_id}",
            ),
            plan=plan.reference() if plan else None,
        )
        job = FakeJob(claim=dataclasses.replace(claim, **changes), plan=plan, log_limit=log_limit)
        with self.lock:
            self.jobs.append(job)
        return job

    def lose_last_batch(self, job: FakeJob) -> None:
        """Forget the last batch, like a database that crashed before its last commit reached the disk."""
        with self.lock:
            count, job.chain = job.before_last_batch
            del job.lines[count:]

    def lose_answers(self, path: str, times: int) -> None:
        """Do what the next requests to a path ask for, but close the connection without a word."""
        with self.lock:
            self._lose.append((re.compile(path), times))

    def answer_instead(self, request: str, foreign: Foreign, *, times: int) -> None:
        """Let something in front of the console, such as a proxy, answer the next requests of a kind."""
        with self.lock:
            self._instead += [(re.compile(request), foreign)] * times

    def answer_again(self) -> None:
        with self.lock:
            self._instead.clear()

    def foreign_answer(self, request: str) -> Foreign | None:
        with self.lock:
            for index, (pattern, foreign) in enumerate(self._instead):
                if pattern.search(request):
                    del self._instead[index]
                    return foreign
        return None

    @contextmanager
    def away(self) -> Iterator[None]:
        """Answer nothing to runners; Terraform's state stays within reach."""
        self._away = True
        try:
            yield
        finally:
            self._away = False

    def is_away(self, path: str) -> bool:
        return self._away and not path.startswith("/state/")

    def loses_answer(self, path: str) -> bool:
        with self.lock:
            for index, (pattern, times) in enumerate(self._lose):
                if times and pattern.search(path):
                    self._lose[index] = (pattern, times - 1)
                    return True
        return False

    def state(self, spec: str = "demo") -> dict[str, Any]:
        return json.loads(self.states.get(spec, b"{}"))  # type: ignore[no-any-return]

    def resources(self, spec: str = "demo") -> set[str]:
        return {resource["name"] for resource in self.state(spec).get("resources", [])}

    # The handler calls these.

    def register(self, request: RegistrationRequest) -> dict[str, Any]:
        with self.lock:
            if request.token not in self.tokens:
                raise Problem(
                    401, "registration_refused", detail="This token is unknown or was used already."
                )
            self.tokens.remove(request.token)
            self.registrations.append(request)
        return {"runner_id": "r1", "name": request.name, "credential": CREDENTIAL}

    def hello(self, facts: RunnerFacts) -> dict[str, Any]:
        self.facts.append(facts)
        return {
            "runner_id": "r1", "name": "suite", "organization": "acme", "pools": ["default"],
            "server_time": (datetime.now(UTC) + self.clock_ahead).isoformat(), "lease_seconds": 60,
        }  # fmt: skip

    def rotate(self) -> dict[str, Any]:
        credential = f"slr_rotated-{len(self.credentials)}"
        self.credentials.add(credential)
        return {"credential": credential}

    def goodbye(self, goodbye: Goodbye) -> dict[str, Any]:
        self.goodbyes.append(goodbye)
        self.answers_goodbyes.wait()
        if self.goodbye_status != 200:
            raise Problem(self.goodbye_status, "not_found")
        return {}

    def claim(self, request: ClaimRequest) -> dict[str, Any] | None:
        with self.lock:
            self.claim_keys.append(request.claim_key)
            self.pools_asked_for.append(request.pools)
            for job in self.jobs:
                if job.claim_key == request.claim_key:
                    return to_wire(job.claim)
            for job in self.jobs:
                if not job.claim_key and job.claim.type in request.types:
                    job.claim_key = request.claim_key
                    return to_wire(job.claim)
        return None

    def held(self, job_id: str, claim_id: str) -> FakeJob:
        with self.lock:
            job = next(job for job in self.jobs if job.claim.job_id == job_id)
            if job.stale or job.claim.claim_id != claim_id:
                raise Problem(409, "stale_claim", detail="This claim is gone.")
            return job

    def heartbeat(self, job: FakeJob) -> dict[str, Any]:
        job.heartbeats += 1
        return {"lease_seconds": job.claim.lease_seconds, "cancel": job.cancel, "drain": self.drain}

    def report(self, job: FakeJob, report: StatusReport) -> dict[str, Any]:
        with self.lock:
            if report not in job.reports:
                if job.final:
                    raise Problem(409, "report_conflict")
                job.reports.append(report)
        return {"status": report.status}

    def append(self, job: FakeJob, batch: LogBatch) -> dict[str, Any]:
        with self.lock:
            expected = len(job.lines) + 1
            if batch.first_seq > expected:
                raise Problem(409, "log_gap", expected_seq=expected)
            if batch.first_seq == expected:
                if expected > job.log_limit:
                    raise Problem(413, "log_full")
                job.before_last_batch = (len(job.lines), job.chain)
                job.lines += [to_wire(line) for line in batch.lines]
                job.chain = extend_chain(job.chain, (line.message for line in batch.lines))
            return {"next_seq": len(job.lines) + 1}

    def keep_plan(self, job: FakeJob, parts: dict[str, bytes]) -> dict[str, Any]:
        job.uploaded = FakePlan(
            plan_id=f"plan-{job.claim.job_number}",
            file=parts["plan"],
            document=json.loads(parts["json"]),
            lock=parts["lock"].decode(),
            fingerprint=json.loads(parts["fingerprint"]),
            snapshot_hash=job.claim.snapshot_hash,
        )
        return {"plan_id": job.uploaded.plan_id, "number": job.claim.job_number}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    console: FakeConsole


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._handle()

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the server's names

    def _handle(self) -> None:
        console = self.server.console
        body = self._body()
        parts = urlsplit(self.path)
        if console.is_away(parts.path):
            console.unanswered += 1
            self.close_connection = True
            return
        if foreign := console.foreign_answer(f"{self.command} {parts.path}"):
            self._answer(foreign.status, foreign.body, foreign.headers)
            return
        console.requests.append(f"{self.command} {parts.path}")
        try:
            if parts.path.startswith("/state/"):
                status, answer = self._state(parts.path, body)
            else:
                status, answer = self._api(parts.path, body)
        except Problem as problem:
            status, answer = problem.status, problem.document
        if console.loses_answer(parts.path) or console.is_away(parts.path):
            self.close_connection = True
            return
        self._answer(status, answer)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            return b""  # `force-unlock` only
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, status: int, answer: Any, headers: Mapping[str, str] | None = None) -> None:
        content = (
            answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
        )
        try:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            self.close_connection = True  # the runner was killed meanwhile

    def _api(self, path: str, body: bytes) -> tuple[int, Any]:
        console = self.server.console
        if path == "/api/runners/register":
            return 201, console.register(from_wire(RegistrationRequest, json.loads(body)))
        if self.headers.get("Authorization", "").removeprefix("Bearer ") not in console.credentials:
            raise Problem(401, "runner_unknown", detail="This runner was revoked.")
        if path == "/api/runners/hello":
            return 200, console.hello(from_wire(RunnerFacts, json.loads(body)))
        if path == "/api/runners/rotate":
            return 201, console.rotate()
        if path == "/api/runners/goodbye":
            return 200, console.goodbye(from_wire(Goodbye, json.loads(body)))
        if path == "/api/jobs/claim":
            return self._claim(from_wire(ClaimRequest, json.loads(body)))
        _, _, _, job_id, action = path.split("/")
        if action == "plan":
            return self._plan(job_id, body)
        if action == "errored-state":
            return self._errored_state(job_id, body)
        message = json.loads(body)
        job = console.held(job_id, message["claim_id"])
        if action == "heartbeat":
            from_wire(HeartbeatRequest, message)
            return 200, console.heartbeat(job)
        if action == "status":
            return 200, console.report(job, from_wire(StatusReport, message))
        if action == "identity-token":
            return 200, to_wire(IdentityTokenAnswer(token=IDENTITY_TOKEN, expires_in_seconds=900))
        if action == "resources":
            job.resources.append(from_wire(FoundResources, message))
            return 200, {}
        return 200, console.append(job, from_wire(LogBatch, message))

    def _claim(self, request: ClaimRequest) -> tuple[int, Any]:
        """Held for a moment only, so that no test waits for the end of a long poll."""
        answers: list[dict[str, Any]] = []

        def has_claim() -> bool:
            if answer := self.server.console.claim(request):
                answers.append(answer)
            return bool(answers)

        try:
            wait_until(has_claim, seconds=min(request.wait_seconds, self.server.console.holds_seconds))
        except AssertionError:
            return 204, None
        return 200, answers[0]

    def _plan(self, job_id: str, body: bytes) -> tuple[int, Any]:
        console = self.server.console
        (claim_id,) = parse_qs(urlsplit(self.path).query)["claim_id"]
        job = console.held(job_id, claim_id)
        if self.command == "PUT":
            return 201, console.keep_plan(job, _multipart(self.headers["Content-Type"], body))
        assert job.plan is not None
        return 200, job.plan.file

    def _errored_state(self, job_id: str, body: bytes) -> tuple[int, Any]:
        if self.server.console.refuses_errored_states:
            raise Problem(403, "forbidden")
        self.server.console.errored_states[job_id] = body
        return 201, {}

    def _state(self, path: str, body: bytes) -> tuple[int, Any]:
        console = self.server.console
        spec = path.split("/")[2]
        with console.lock:
            self._authenticate()
            if path.endswith("/lock"):
                return self._state_lock(spec, body)
            if self.command == "GET":
                return (200, console.states[spec]) if spec in console.states else (204, None)
            if console.refused_state_writes:
                console.refused_state_writes -= 1
                raise Problem(403, "state_write_refused")
            console.states[spec] = body
            return 200, None

    def _state_lock(self, spec: str, body: bytes) -> tuple[int, Any]:
        locks = self.server.console.state_locks
        if self.command == "DELETE":
            locks.pop(spec, None)
        elif spec in locks:
            return 423, locks[spec]
        else:
            locks[spec] = body
        return 200, None

    def _authenticate(self) -> None:
        """A state credential lives as long as its claim."""
        _, _, encoded = self.headers.get("Authorization", "").partition(" ")
        job_id, _, password = base64.b64decode(encoded).decode().partition(":")
        for job in self.server.console.jobs:
            state = job.claim.state
            if state and (state.username, state.password) == (job_id, password) and not job.stale:
                return
        raise Problem(401, "state_refused")


def _multipart(content_type: str, body: bytes) -> dict[str, bytes]:
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    message = email.message_from_bytes(head + body, policy=email.policy.HTTP)
    return {
        str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True)  # type: ignore[misc]
        for part in message.iter_parts()
    }
