"""Speaks the runner protocol: one method per message, patient with a console that is away."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import random
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx

from runner import __version__, clock
from runner.protocol import (
    Claim,
    ClaimRequest,
    FoundResources,
    Goodbye,
    HeartbeatAnswer,
    HeartbeatRequest,
    HelloAnswer,
    IdentityTokenAnswer,
    IdentityTokenRequest,
    LogAnswer,
    ProtocolError,
    RegistrationAnswer,
    RegistrationRequest,
    RotationAnswer,
    RunnerFacts,
    StatusAnswer,
    StatusReport,
    from_wire,
    to_wire,
)

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
#: Asked while waiting: whether to stop trying.
GiveUp = Callable[[], bool]

#: Waits between tries: 0.25 s, doubling to 10 s, each shortened by up to half so that a fleet that
#: lost its console together does not return together.
_FIRST_WAIT_SECONDS = 0.25
_LONGEST_WAIT_SECONDS = 10.0
#: A Retry-After beyond this is not believed.
_LONGEST_RETRY_AFTER_SECONDS = 300.0
_PAUSE_SLICE_SECONDS = 0.1

#: Time for one phase (connect, send, or the wait for bytes) of a request.
_TIMEOUT_SECONDS = 20.0
MAX_PLAN_BYTES = 1024 * 1024 * 1024
_COPY_BYTES = 256 * 1024
_NO_CONTENT = httpx.codes.NO_CONTENT


class ConsoleError(Exception):
    """The console did not do what the runner asked."""


class ConsoleAway(ConsoleError):
    """The console did not answer, and it was not worth waiting longer."""


class Refused(ConsoleError):
    """The console understood and said no: a problem document."""

    def __init__(self, *, status: int, code: str, detail: str) -> None:
        super().__init__(f"{detail} ({code})" if detail else f"HTTP {status} ({code})")
        self.status = status
        self.code = code
        self.detail = detail


class NotTheConsole(Refused):
    """Something else answered at the console's address: a proxy, a sign-in page, another program."""

    def __init__(self, response: httpx.Response) -> None:
        target = response.headers.get("Location")
        answer = f"HTTP {response.status_code}" + (f", go to {target}" if target else "")
        detail = (
            f"{response.request.url} is answered by something else than a console ({answer}): check --console"
        )
        super().__init__(status=response.status_code, code="not_the_console", detail=detail)


class CredentialRefused(Refused):
    """The runner's credential is unknown or revoked."""


class RegistrationRefused(Refused):
    """The registration token is unknown, used or too old."""


class StaleClaim(Refused):
    """The claim is gone: this attempt no longer speaks for the job."""


class UnreadableClaim(Refused):
    """A job that this runner does not understand. It is held all the same, and nobody else may take it."""

    def __init__(self, claim: Any, detail: str) -> None:
        super().__init__(status=httpx.codes.OK, code="invalid_answer", detail=detail)
        fields = claim if isinstance(claim, dict) else {}
        self.job_id, self.claim_id = str(fields.get("job_id", "")), str(fields.get("claim_id", ""))


class LogFull(Refused):
    """The job's log has reached the console's limit."""


class LogGap(Refused):
    """The batch does not follow the last accepted line."""

    def __init__(self, *, status: int, code: str, detail: str, expected_seq: int) -> None:
        super().__init__(status=status, code=code, detail=detail)
        self.expected_seq = expected_seq


_REFUSALS: dict[str, type[Refused]] = {
    "stale_claim": StaleClaim,
    "runner_unknown": CredentialRefused,
    "registration_refused": RegistrationRefused,
    "log_full": LogFull,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlanUpload:
    """The results of a PLAN: the saved plan, its masked JSON, the lock file and the fingerprint."""

    plan: Path
    masked_json: Path
    lock: Path
    fingerprint: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlanUploaded:
    plan_id: str
    number: int


class ConsoleClient:
    """One console, one credential. Safe to use from several threads."""

    def __init__(
        self, *, console_url: str, credential: str | None = None, ca_file: Path | None = None
    ) -> None:
        self._url = console_url
        self._http = httpx.Client(
            base_url=console_url,
            headers={"User-Agent": f"slipway-runner/{__version__}"},
            timeout=_TIMEOUT_SECONDS,
            verify=ssl.create_default_context(cafile=ca_file) if ca_file else True,
        )
        self._outage = _Outage(console_url)
        self._is_found = False
        self.credential = ""
        self._other_credential: Callable[[], str | None] = lambda: None
        if credential:
            self.use_credential(credential)

    def use_credential(self, credential: str) -> None:
        self.credential = credential
        self._http.headers["Authorization"] = f"Bearer {credential}"

    def on_refusal(self, other_credential: Callable[[], str | None]) -> None:
        """Set a source for another credential when the console no longer accepts this one."""
        self._other_credential = other_credential

    def close(self) -> None:
        self._http.close()

    def register(self, request: RegistrationRequest, *, give_up: GiveUp) -> RegistrationAnswer:
        return self._ask(
            RegistrationAnswer, "POST", "/api/runners/register", json=to_wire(request), give_up=give_up
        )

    def hello(self, facts: RunnerFacts, *, give_up: GiveUp) -> HelloAnswer:
        return self._ask(HelloAnswer, "POST", "/api/runners/hello", json=to_wire(facts), give_up=give_up)

    def rotate(self) -> RotationAnswer:
        return self._ask(RotationAnswer, "POST", "/api/runners/rotate", give_up=lambda: True)

    def goodbye(self, goodbye: Goodbye, *, timeout: float) -> None:
        """Try once, and log nothing: nobody waits for an absent console any more."""
        try:
            _raise_for(self._http.post("/api/runners/goodbye", json=to_wire(goodbye), timeout=timeout))
        except (httpx.RequestError, _TryLater) as reason:
            raise ConsoleAway(f"The console at {self._url} does not answer: {_describe(reason)}") from reason

    def claim(self, request: ClaimRequest, *, give_up: GiveUp) -> Claim | None:
        """Wait for a job. Each try repeats the same claim key, so an answer that got lost comes again."""
        return self._send(
            "POST",
            "/api/jobs/claim",
            read=_read_claim,
            json=to_wire(request),
            give_up=give_up,
            timeout=request.wait_seconds + _TIMEOUT_SECONDS,
        )

    def heartbeat(self, job_id: str, request: HeartbeatRequest, *, timeout: float) -> HeartbeatAnswer:
        """Send one beat, without another try: the next beat is that."""
        return self._ask(
            HeartbeatAnswer,
            "POST",
            f"/api/jobs/{job_id}/heartbeat",
            json=to_wire(request),
            give_up=lambda: True,
            timeout=timeout,
        )

    def report(self, job_id: str, report: StatusReport, *, give_up: GiveUp) -> StatusAnswer:
        return self._ask(
            StatusAnswer, "PUT", f"/api/jobs/{job_id}/status", json=to_wire(report), give_up=give_up
        )

    def append_log(
        self, job_id: str, claim_id: str, first_seq: int, lines: list[bytes], *, give_up: GiveUp
    ) -> LogAnswer:
        """Deliver a LogBatch whose lines were encoded when they were written, to encode them once."""
        head = f'{{"claim_id":"{claim_id}","first_seq":{first_seq},"lines":['
        body = head.encode() + b",".join(lines) + b"]}"
        return self._ask(
            LogAnswer,
            "POST",
            f"/api/jobs/{job_id}/logs",
            content=body,
            headers={"Content-Type": "application/json"},
            give_up=give_up,
        )

    def upload_plan(self, job_id: str, claim_id: str, upload: PlanUpload, *, give_up: GiveUp) -> PlanUploaded:
        return self._ask(
            PlanUploaded,
            "PUT",
            f"/api/jobs/{job_id}/plan",
            params={"claim_id": claim_id},
            upload=upload,
            give_up=give_up,
        )

    def download_plan(self, job_id: str, claim_id: str, target: Path, *, give_up: GiveUp) -> str:
        """Write the reviewed plan file to `target`; returns the SHA-256 of what was written."""

        def fetch() -> str:
            path, params = f"/api/jobs/{job_id}/plan", {"claim_id": claim_id}
            with self._http.stream("GET", path, params=params) as response:
                if response.status_code != httpx.codes.OK or _is_page(response):
                    response.read()
                    _raise_for(response)
                return _save(response, target)

        return self._retry(fetch, give_up=give_up)

    def upload_errored_state(self, job_id: str, claim_id: str, state: bytes, *, give_up: GiveUp) -> None:
        """Keep a state that Terraform could not save with its job. The claim may be gone by now."""
        self._send(
            "PUT",
            f"/api/jobs/{job_id}/errored-state",
            read=_ignore,
            params={"claim_id": claim_id},
            content=state,
            headers={"Content-Type": "application/octet-stream"},
            give_up=give_up,
        )

    def identity_token(
        self, job_id: str, request: IdentityTokenRequest, *, give_up: GiveUp
    ) -> IdentityTokenAnswer:
        return self._ask(
            IdentityTokenAnswer,
            "POST",
            f"/api/jobs/{job_id}/identity-token",
            json=to_wire(request),
            give_up=give_up,
        )

    def send_resources(self, job_id: str, resources: FoundResources, *, give_up: GiveUp) -> None:
        path = f"/api/jobs/{job_id}/resources"
        self._send("PUT", path, read=_ignore, json=to_wire(resources), give_up=give_up)

    def _ask(self, kind: type[Answer], method: str, path: str, *, give_up: GiveUp, **request: Any) -> Answer:
        return self._send(
            method, path, read=lambda response: _read(kind, response), give_up=give_up, **request
        )

    def _send(
        self,
        method: str,
        path: str,
        *,
        read: Callable[[httpx.Response], Answer],
        give_up: GiveUp,
        upload: PlanUpload | None = None,
        **request: Any,
    ) -> Answer:
        def once() -> Answer:
            # Files are opened for each try: a failed one has read them.
            with _multipart(upload) as parts:
                response = self._http.request(method, path, **request, **parts)
            _raise_for(response)
            return read(response)

        return self._retry(once, give_up=give_up)

    def _retry(self, attempt: Callable[[], Answer], *, give_up: GiveUp) -> Answer:
        tries = 0
        while True:
            try:
                answer = attempt()
            except (httpx.RequestError, _TryLater, NotTheConsole) as reason:
                # Once found, the console is behind whatever answers in its place now.
                if isinstance(reason, NotTheConsole) and not self._is_found:
                    raise
                self._outage.begin(reason)
                if give_up() or not _pause(_wait_seconds(tries, reason), give_up):
                    raise ConsoleAway(
                        f"The console at {self._url} does not answer: {_describe(reason)}"
                    ) from reason
                tries += 1
            except CredentialRefused:
                self._outage.end()
                other = self._other_credential()
                if not other or other == self.credential:
                    raise
                self.use_credential(other)
            except Refused:
                self._outage.end()
                raise
            else:
                self._is_found = True
                self._outage.end()
                return answer


def errored_state_path(job_id: str, claim_id: str) -> str:
    """Return the address at which people download a state that was uploaded with its job."""
    return f"/api/jobs/{job_id}/errored-states/{claim_id}"


class _TryLater(Exception):
    """An answer that asks for another try later."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class _Outage:
    """Logs once that the console is away, and once that it is back."""

    def __init__(self, console_url: str) -> None:
        self._url = console_url
        self._since: float | None = None
        self._lock = threading.Lock()

    def begin(self, reason: Exception) -> None:
        with self._lock:
            if self._since is not None:
                return
            self._since = clock.now()
        logger.warning("The console at %s does not answer (%s); trying again.", self._url, _describe(reason))

    def end(self) -> None:
        with self._lock:
            since, self._since = self._since, None
        if since is not None:
            logger.info("The console answers again after %.0f s.", clock.now() - since)


def _describe(reason: Exception) -> str:
    return str(reason) or type(reason).__name__


def _wait_seconds(tries: int, reason: Exception) -> float:
    longest = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0 ** min(tries, 10))
    retry_after = reason.retry_after if isinstance(reason, _TryLater) else 0.0
    return max(retry_after, longest * random.uniform(0.5, 1.0))  # noqa: S311 - it only spreads load


def _pause(seconds: float, give_up: GiveUp) -> bool:
    """Wait, unless it is time to give up; returns whether to try again."""
    end = clock.now() + seconds
    while (remaining := end - clock.now()) > 0:
        time.sleep(min(remaining, _PAUSE_SLICE_SECONDS))
        if give_up():
            return False
    return True


def _read(kind: type[Answer], response: httpx.Response) -> Answer:
    try:
        document = response.json()
    except (ValueError, RecursionError) as error:
        raise NotTheConsole(response) from error
    try:
        return from_wire(kind, document)
    except ProtocolError as error:
        path = response.request.url.path
        raise Refused(
            status=response.status_code, code="invalid_answer", detail=f"{path}: {error}"
        ) from error


def _read_claim(response: httpx.Response) -> Claim | None:
    if response.status_code == _NO_CONTENT:
        return None
    try:
        return _read(Claim, response)
    except NotTheConsole:
        raise
    except Refused as error:
        raise UnreadableClaim(response.json(), error.detail) from error


def _raise_for(response: httpx.Response) -> None:
    status = response.status_code
    if status >= 500 or status in (408, 425, 429):
        raise _TryLater(f"HTTP {status}", _retry_after(response.headers.get("Retry-After")))
    problem = {} if response.is_success else _problem(response)
    if _is_page(response) or response.is_redirect or (status in (401, 404) and not problem.get("code")):
        raise NotTheConsole(response)
    if not response.is_success:
        raise _refusal(response, problem)


def _is_page(response: httpx.Response) -> bool:
    """Return whether this is a web page, which the console never sends to runners."""
    is_html = response.headers.get("Content-Type", "").startswith("text/html")
    return is_html and response.is_success and response.status_code != _NO_CONTENT


def _ignore(response: httpx.Response) -> None:
    """Read nothing: the status is the whole answer."""


def _refusal(response: httpx.Response, problem: dict[str, Any]) -> Refused:
    code = str(problem.get("code") or "")
    facts: dict[str, Any] = {"status": response.status_code, "code": code or "refused"}
    facts["detail"] = (
        str(problem.get("detail") or problem.get("title") or "")
        if code
        else _describe_proxy_refusal(response)
    )
    expected = problem.get("expected_seq")
    if code == "log_gap" and isinstance(expected, int):
        return LogGap(expected_seq=expected, **facts)
    return _REFUSALS.get(code, Refused)(**facts)


def _describe_proxy_refusal(response: httpx.Response) -> str:
    """Describe a refusal without the code that each of the console's own has."""
    problem = f"Something in front of the console answers HTTP {response.status_code}"
    if response.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
        return f"{problem}: it takes no request of this size. Raise its limit, see docs/operating.md"
    return f"{problem}: it does not let this request pass"


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        document = response.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _retry_after(value: str | None) -> float:
    if not value:
        return 0.0
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return 0.0
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER_SECONDS)


@contextmanager
def _multipart(upload: PlanUpload | None) -> Iterator[dict[str, Any]]:
    if upload is None:
        yield {}
        return
    with ExitStack() as stack:
        files = {
            "plan": ("plan", stack.enter_context(upload.plan.open("rb")), "application/octet-stream"),
            "json": ("plan.json", stack.enter_context(upload.masked_json.open("rb")), "application/json"),
            "lock": ("lock.hcl", stack.enter_context(upload.lock.open("rb")), "text/plain"),
        }
        yield {"files": files, "data": {"fingerprint": upload.fingerprint}}


def _save(response: httpx.Response, target: Path) -> str:
    digest, size = hashlib.sha256(), 0
    with target.open("wb") as file:
        for chunk in response.iter_bytes(_COPY_BYTES):
            size += len(chunk)
            if size > MAX_PLAN_BYTES:
                raise Refused(status=200, code="too_large", detail="The plan file is larger than 1 GiB.")
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()
