"""An attempt as a runner makes it, at the services that the wire calls: quick enough for thousands."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from console.jobs import attempts
from console.jobs.log.append import IncomingBatch, append_log
from console.jobs.queue import Held
from console.runners.services import KnownRunner, recognize
from runner.protocol import Claim, ClaimRequest, StatusReport
from tests.people import ALL_TYPES, Tenant, new_key


@dataclass(frozen=True)
class Worker:
    runner: KnownRunner

    @classmethod
    def of(cls, tenant: Tenant, name: str, **options: object) -> Worker:
        return cls(recognize(tenant.new_runner(name, **options)[1]))  # type: ignore[arg-type]

    def claim(self, key: str | None = None) -> Claim | None:
        request = ClaimRequest(claim_key=key or new_key(), types=ALL_TYPES)
        return attempts.claim_job(runner=self.runner, request=request)

    def take(self) -> Claim:
        claim = self.claim()
        assert claim is not None, "there was nothing to claim"
        return claim

    def take_and_start(self) -> Claim:
        claim = self.take()
        self.start(claim)
        return claim

    def held(self, claim: Claim) -> Held:
        return Held(UUID(claim.job_id), UUID(claim.claim_id), self.runner.id)

    def start(self, claim: Claim) -> None:
        attempts.start_attempt(held=self.held(claim))

    def beat(self, claim: Claim) -> str | None:
        return attempts.heartbeat(held=self.held(claim)).cancel

    def report(self, claim: Claim, status: str, **fields: object) -> str:
        report = StatusReport(claim_id=claim.claim_id, status=status, **fields)  # type: ignore[arg-type]
        return attempts.finish_attempt(held=self.held(claim), runner=self.runner, report=report)

    def log(self, claim: Claim, first_seq: int, *messages: str) -> int:
        lines = [{"at": "2026-01-01T00:00:00Z", "level": "info", "message": text} for text in messages]
        return append_log(held=self.held(claim), incoming=IncomingBatch(first_seq, lines))
