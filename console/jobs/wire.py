"""The endpoints of runners for jobs: each view reads one message and calls one service."""

import asyncio
from dataclasses import replace
from uuid import UUID

import orjson
from django.http import HttpRequest, HttpResponse

from console.errors import InvalidMessage, MoveRefused
from console.jobs import attempts, errored_states
from console.jobs.lifecycle import PROCESSING, is_final
from console.jobs.log.append import IncomingBatch
from console.jobs.log.append import append_log as append_to_log
from console.jobs.queue import Held
from console.live import topics
from console.live.listener import listener
from console.live.threads import in_thread
from console.runners.recognition import as_runner, recall_runner, verify_runner
from console.runners.requests import bearer, message, method
from console.runners.services import KnownRunner, pools_to_serve, recognize
from runner.protocol import (
    Claim,
    ClaimRequest,
    HeartbeatRequest,
    JobStatus,
    StatusAnswer,
    StatusReport,
)

#: The longest that a claim request is held. Proxies commonly cut at 60 s.
MAX_WAIT_SECONDS = 30.0
#: A held request tries again this often, so that a lost notification costs latency only.
RETRY_SECONDS = 5.0


@method("POST")
async def claim(request: HttpRequest) -> HttpResponse:
    """Hand out a job, holding the request until there is one or the wait is over."""
    body = message(ClaimRequest, request)
    uuid_in(body.claim_key, "claim_key")
    credential = bearer(request)
    runner, claimed = await in_thread(_recognize_and_claim, credential, body)
    if claimed is None and body.wait_seconds > 0:
        claimed = await _wait_for_claim(credential, runner, body)
    if claimed is None:
        return HttpResponse(status=204)
    return wire_answer(claimed)


@method("POST")
async def heartbeat(request: HttpRequest, job_id: UUID) -> HttpResponse:
    body = message(HeartbeatRequest, request)
    answer = await in_thread(_heartbeat, bearer(request), job_id, uuid_in(body.claim_id, "claim_id"))
    return wire_answer(answer)


@method("PUT")
async def status(request: HttpRequest, job_id: UUID) -> HttpResponse:
    report = message(StatusReport, request)
    uuid_in(report.claim_id, "claim_id")
    answer = await in_thread(_report, bearer(request), job_id, report)
    return wire_answer(StatusAnswer(status=answer))


@method("POST")
async def append_log(request: HttpRequest, job_id: UUID) -> HttpResponse:
    claim_id, incoming = _incoming_batch(request.body)
    next_seq = await in_thread(_append, bearer(request), job_id, claim_id, incoming)
    return wire_answer({"next_seq": next_seq})


@method("PUT")
async def errored_state(request: HttpRequest, job_id: UUID) -> HttpResponse:
    claim_id = uuid_in(request.GET.get("claim_id", ""), "claim_id")
    body = request.read(errored_states.MAX_BYTES + 1)
    await in_thread(_keep_errored_state, bearer(request), job_id, claim_id, body)
    return wire_answer({}, status=201)


async def _wait_for_claim(credential: str, runner: KnownRunner, body: ClaimRequest) -> Claim | None:
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + min(body.wait_seconds, MAX_WAIT_SECONDS)
    async with listener().subscribe(topics.pool(pool_id) for pool_id in runner.pool_ids) as subscription:
        while (remaining := ends_at - loop.time()) > 0:
            # Tries before it waits: a job may have come between the first try and the subscription.
            _, claimed = await in_thread(_recognize_and_claim, credential, body)
            if claimed is not None:
                return claimed
            await subscription.wait(seconds=min(remaining, RETRY_SECONDS))
    return None


def _recognize_and_claim(credential: str, body: ClaimRequest) -> tuple[KnownRunner, Claim | None]:
    """Recognize the runner again at each try: one that was revoked while it waited gets nothing."""
    runner = recall_runner(credential)
    if runner is not None and not body.pools and (claimed := attempts.claim_job(runner=runner, request=body)):
        return runner, claimed
    verified = verify_runner(credential)
    if body.pools:
        verified = replace(verified, pool_ids=pools_to_serve(runner_id=verified.id, names=body.pools))
    elif runner is not None and runner.pool_ids == verified.pool_ids:
        return verified, None
    return verified, attempts.claim_job(runner=verified, request=body)


def _heartbeat(credential: str, job_id: UUID, claim_id: UUID) -> object:
    return as_runner(
        credential, lambda runner: attempts.heartbeat(held=_claim_held_by(job_id, claim_id, runner))
    )


def _report(credential: str, job_id: UUID, report: StatusReport) -> JobStatus:
    return as_runner(credential, lambda runner: _report_as(runner, job_id, report))


def _report_as(runner: KnownRunner, job_id: UUID, report: StatusReport) -> JobStatus:
    held = _claim_held_by(job_id, UUID(report.claim_id), runner)
    if report.status == PROCESSING:
        attempts.start_attempt(held=held)
        return PROCESSING
    if is_final(report.status):
        return attempts.finish_attempt(held=held, runner=runner, report=report)
    raise MoveRefused(f"A runner reports PROCESSING or a final status, not {report.status}.")


def _keep_errored_state(credential: str, job_id: UUID, claim_id: UUID, body: bytes) -> None:
    runner = recognize(credential)
    errored_states.keep_errored_state(held=Held(job_id, claim_id, runner.id), body=body)


def _append(credential: str, job_id: UUID, claim_id: UUID, incoming: IncomingBatch) -> int:
    return as_runner(
        credential,
        lambda runner: append_to_log(held=_claim_held_by(job_id, claim_id, runner), incoming=incoming),
    )


def _claim_held_by(job_id: UUID, claim_id: UUID, runner: KnownRunner) -> Held:
    return Held(job_id, claim_id, runner.id, runner.credential)


def _incoming_batch(body: bytes) -> tuple[UUID, IncomingBatch]:
    """Decoded by hand, since this is the busiest endpoint: the lines are checked once, as they are stored."""
    try:
        batch = orjson.loads(body)
        claim_id, first_seq, lines = batch["claim_id"], batch["first_seq"], batch["lines"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InvalidMessage("Expected an object with claim_id, first_seq and lines.") from error
    if not isinstance(first_seq, int) or first_seq < 1 or not isinstance(lines, list):
        raise InvalidMessage("first_seq is a number from 1, lines is a list.")
    return uuid_in(claim_id, "claim_id"), IncomingBatch(first_seq, lines)


def uuid_in(text: object, field: str) -> UUID:
    try:
        return UUID(str(text))
    except ValueError as error:
        raise InvalidMessage(f"{field}: expected a UUID") from error


def wire_answer(value: object, *, status: int = 200) -> HttpResponse:
    """Answer with a message of the protocol: a dataclass, which orjson writes as it is."""
    return HttpResponse(orjson.dumps(value), status=status, content_type="application/json")
