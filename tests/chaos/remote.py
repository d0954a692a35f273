"""A runner-like client of a console in another process: real HTTP, and as stubborn as a runner is."""

from __future__ import annotations

import time
from typing import Any, Self

import httpx

from runner.protocol import Claim, from_wire
from tests.console_app import line
from tests.people import ALL_TYPES, new_key

#: How long a runner would go on trying, for the purposes of a test.
STUBBORN_SECONDS = 60


class RemoteRunner:
    def __init__(self, url: str, credential: str) -> None:
        self._client = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {credential}"}, trust_env=False, timeout=35
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self._client.close()

    def say(self, method: str, path: str, body: dict[str, Any]) -> httpx.Response:
        """Send it until there is an answer that is not the console's trouble."""
        deadline = time.monotonic() + STUBBORN_SECONDS
        while True:
            try:
                answer = self._client.request(method, path, json=body)
                if answer.status_code < 500:
                    return answer
                trouble = answer.text
            except httpx.TransportError as error:
                trouble = repr(error)
            assert time.monotonic() < deadline, f"the console did not come back: {trouble}"
            time.sleep(0.05)

    def claim(self, *, key: str | None = None, wait: float = 0.0) -> Claim | None:
        body = {"claim_key": key or new_key(), "types": ALL_TYPES, "wait_seconds": wait}
        answer = self.say("POST", "/api/jobs/claim", body)
        return from_wire(Claim, answer.json()) if answer.status_code == 200 else None

    def take_and_start(self) -> Claim:
        claim = self.claim(wait=10)
        assert claim is not None
        assert self.report(claim, "PROCESSING").status_code == 200
        return claim

    def report(self, claim: Claim, status: str, **fields: Any) -> httpx.Response:
        body = {"claim_id": claim.claim_id, "status": status, **fields}
        return self.say("PUT", f"/api/jobs/{claim.job_id}/status", body)

    def heartbeat(self, claim: Claim) -> httpx.Response:
        return self.say("POST", f"/api/jobs/{claim.job_id}/heartbeat", {"claim_id": claim.claim_id})

    def log(self, claim: Claim, first_seq: int, *messages: str) -> httpx.Response:
        body = {
            "claim_id": claim.claim_id,
            "first_seq": first_seq,
            "lines": [line(message) for message in messages],
        }
        return self.say("POST", f"/api/jobs/{claim.job_id}/logs", body)
