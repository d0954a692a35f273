"""The console as an application in this process, and clients that speak HTTP to it.

The application runs on an event loop in a thread of its own, so that tests stay plain functions that may
also look into the database. Its database work happens in other threads: such tests need real commits.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

import httpx
import pytest

from runner.protocol import (
    EMPTY_CHAIN,
    Claim,
    HeartbeatAnswer,
    extend_chain,
    from_wire,
)
from tests.people import ALL_TYPES, Tenant, new_key

Answer = TypeVar("Answer")

ADDRESS = "http://127.0.0.1:8000"
#: Longer than anything here may take: a test that hangs fails by this.
PATIENCE_SECONDS = 60


class Background:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="console", daemon=True)
        self._thread.start()

    def begin(self, work: Coroutine[Any, Any, Answer]) -> Future[Answer]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return self.begin(work).result(PATIENCE_SECONDS)

    def close(self) -> None:
        self.run(self._cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self.loop.close()

    async def _cancel_all(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Http:
    """A client of the console with one Authorization header."""

    def __init__(self, background: Background, authorization: str = "", *, base_url: str = ADDRESS) -> None:
        from console.asgi import application

        self._background = background
        headers = {"Authorization": authorization} if authorization else {}
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=application), base_url=base_url, headers=headers
        )

    def begin(self, method: str, path: str, **options: Any) -> Future[httpx.Response]:
        """Send a request and do not wait for its answer."""
        return self._background.begin(self._client.request(method, path, **options))

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.begin(method, path, **options).result(PATIENCE_SECONDS)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> httpx.Response:
        return self.request("PUT", path, **options)

    def delete(self, path: str, **options: Any) -> httpx.Response:
        return self.request("DELETE", path, **options)


class RunnerClient(Http):
    """A runner's client, one method for each message to the console."""

    def claim_request(
        self, *, key: str | None = None, types: list[str] | None = None, wait: float = 0.0
    ) -> dict[str, Any]:
        return {
            "claim_key": key or new_key(),
            "types": ALL_TYPES if types is None else types,
            "wait_seconds": wait,
        }

    def claim(
        self, *, key: str | None = None, types: list[str] | None = None, wait: float = 0.0
    ) -> Claim | None:
        answer = self.post("/api/jobs/claim", json=self.claim_request(key=key, types=types, wait=wait))
        return claim_in(answer)

    def begin_claim(self, *, key: str | None = None, wait: float) -> Future[httpx.Response]:
        return self.begin("POST", "/api/jobs/claim", json=self.claim_request(key=key, wait=wait))

    def take(self) -> Claim:
        """Claim the job that the test knows to be there."""
        claim = self.claim()
        assert claim is not None, "there was nothing to claim"
        return claim

    def take_and_start(self) -> Claim:
        claim = self.take()
        assert self.start(claim).status_code == 200
        return claim

    def heartbeat(self, claim: Claim) -> httpx.Response:
        return self.post(f"/api/jobs/{claim.job_id}/heartbeat", json={"claim_id": claim.claim_id})

    def beat(self, claim: Claim) -> HeartbeatAnswer:
        answer = self.heartbeat(claim)
        assert answer.status_code == 200, answer.text
        return from_wire(HeartbeatAnswer, answer.json())

    def report(self, claim: Claim, status: str, **fields: Any) -> httpx.Response:
        return self.put(f"/api/jobs/{claim.job_id}/status", json=status_report(claim, status, **fields))

    def start(self, claim: Claim) -> httpx.Response:
        return self.report(claim, "PROCESSING")

    def succeed(self, claim: Claim, **fields: Any) -> httpx.Response:
        return self.report(claim, "SUCCESS", **fields)

    def fail(self, claim: Claim, **fields: Any) -> httpx.Response:
        return self.report(
            claim, "FAILED", **{"error_code": "broken", "error_message": "It broke.", **fields}
        )

    def log(self, claim: Claim, first_seq: int, *messages: str, level: str = "info") -> httpx.Response:
        return self.log_lines(claim, first_seq, [line(message, level) for message in messages])

    def log_lines(self, claim: Claim, first_seq: int, lines: list[Any]) -> httpx.Response:
        body = {"claim_id": claim.claim_id, "first_seq": first_seq, "lines": lines}
        return self.post(f"/api/jobs/{claim.job_id}/logs", json=body)

    def upload_plan(self, claim: Claim, **fields: Any) -> httpx.Response:
        files, data = plan_form(**fields)
        return self.put(f"/api/jobs/{claim.job_id}/plan?claim_id={claim.claim_id}", files=files, data=data)

    def download_plan(self, claim: Claim) -> httpx.Response:
        return self.get(f"/api/jobs/{claim.job_id}/plan?claim_id={claim.claim_id}")


def claim_in(answer: httpx.Response) -> Claim | None:
    assert answer.status_code in (200, 204), answer.text
    return from_wire(Claim, answer.json()) if answer.status_code == 200 else None


def status_report(claim: Claim, status: str, **fields: Any) -> dict[str, Any]:
    return {"claim_id": claim.claim_id, "status": status, **fields}


def line(message: str, level: str = "info", **data: Any) -> dict[str, Any]:
    return {"at": "2026-01-01T00:00:00Z", "level": level, "message": message, "data": data or None}


def receipt(next_seq: int, *batches: list[str]) -> dict[str, Any]:
    """The receipt that a runner sends for its complete log."""
    chain = EMPTY_CHAIN
    for batch in batches:
        chain = extend_chain(chain, batch)
    return {"next_seq": next_seq, "chain": chain}


PLAN_JSON = (
    b'{"resource_changes":[{"address":"terraform_data.one","mode":"managed","type":"terraform_data",'
    b'"name":"one","change":{"actions":["create"],"before":null,"after":{"input":"x"},"after_unknown":{},'
    b'"before_sensitive":false,"after_sensitive":{}}}]}'
)


def plan_form(
    *,
    plan: bytes = b"a plan file",
    json: bytes = PLAN_JSON,
    lock: bytes = b"",
    lineage: str = "",
    serial: int = 0,
    fingerprint: str | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    made_from = fingerprint or (
        f'{{"state_lineage":"{lineage}","state_serial":{serial},'
        '"terraform_version":"1.11.4","provider_lock_sha256":""}'
    )
    parts = {"plan": plan, "json": json, "lock": lock}
    return {name: (name, content) for name, content in parts.items()}, {"fingerprint": made_from}


def code_of(answer: httpx.Response) -> str:
    """The stable code of a refusal."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return str(answer.json()["code"])


class Console:
    """Makes clients of the console in this process."""

    def __init__(self, background: Background) -> None:
        self.background = background

    def runner(self, credential: str) -> RunnerClient:
        return RunnerClient(self.background, f"Bearer {credential}")

    def new_runner(self, tenant: Tenant, name: str = "runner", **options: Any) -> RunnerClient:
        return self.runner(tenant.new_runner(name, **options)[1])

    def person(self, tenant: Tenant, role: str) -> Http:
        """The API as a person of the tenant with an API token uses it: `viewer`, `operator`, `admin`."""
        return Http(self.background, f"Bearer {tenant.token_of(getattr(tenant, role))}")

    def anybody(self) -> Http:
        return Http(self.background)

    def with_authorization(self, authorization: str) -> Http:
        return Http(self.background, authorization)


@pytest.fixture(scope="session")
def background(ended_connections: None) -> Iterator[Background]:
    background = Background()
    yield background
    background.close()


@pytest.fixture
def console(background: Background) -> Console:
    return Console(background)


@pytest.fixture
def runner(console: Console, ours: Tenant) -> RunnerClient:
    """A registered runner of our organization, in its default pool."""
    return console.new_runner(ours)
