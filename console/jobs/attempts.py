"""A runner's requests about jobs: claim one, keep it alive, report its end."""

import hashlib
import logging
import random
from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.base import ModelState

from console.audit.models import ActorKind
from console.errors import (
    InvalidMessage,
    MoveRefused,
    ReportConflict,
    SlipwayError,
    SnapshotUnreadable,
    StaleClaim,
)
from console.jobs import hooks, queue
from console.jobs.announce import announce
from console.jobs.ending import end
from console.jobs.lifecycle import (
    CLAIMED,
    FAILED,
    PROCESSING,
    REPORT_MOVES,
    STOPPED,
    SUCCESS,
    Ending,
    after_failure,
)
from console.jobs.log.masking import forget_secrets, remember_secrets
from console.jobs.models import Attempt, Job, Outcome
from console.jobs.queue import Held
from console.runners.recognition import require_verified
from console.runners.services import KnownRunner
from runner.protocol import (
    EMPTY_CHAIN,
    CancelReason,
    Claim,
    ClaimRequest,
    HeartbeatAnswer,
    JobStatus,
    StatusReport,
)
from specs.variables import reveal

#: The first retry waits about this long, each later one twice as long as the one before.
RETRY_BASE_SECONDS = 5.0
RETRY_MAX_SECONDS = 300.0


#: The length of the job's column.
MAX_ERROR_CODE_CHARS = 60


logger = logging.getLogger("slipway.jobs")


OUTCOMES = {"SUCCESS": Outcome.SUCCEEDED, "FAILED": Outcome.FAILED, "CANCELLED": Outcome.CANCELLED}


def claim_job(*, runner: KnownRunner, request: ClaimRequest) -> Claim | None:
    """Hand the runner the next job it may run, with everything it needs."""
    try:
        held = _claim(runner, request)
    except IntegrityError:
        # The same request came twice at once, and the other one made the claim, which is committed by now.
        held = _claim(runner, request)
    if held is None:
        return None
    announce(job_id=held.id, organization_id=held.organization_id)
    try:
        answer = _claim_answer(held)
    except SlipwayError as refusal:
        _refuse(held, refusal)
        return None
    except ValueError:
        # It would fail on every runner, and block all jobs behind it.
        logger.exception("job %s cannot be handed out", held.id)
        _refuse(held, SnapshotUnreadable())
        return None
    remember_secrets(answer)
    return answer


def _refuse(held: queue.Claimed, refusal: SlipwayError) -> None:
    """Fail a job that turns out, at the last moment, not to be allowed: before its runner hears of it."""
    end(
        claim_id=held.claim_id,
        ending=Ending("fail", error_code=refusal.code, error_message=str(refusal)),
        attempt=queue.AttemptEnd(outcome=Outcome.FAILED, reason=str(refusal)),
        actor=queue.Actor(ActorKind.SYSTEM, None, "slipway"),
        seen_status=CLAIMED,
    )


def start_attempt(*, held: Held) -> None:
    """Move a job from CLAIMED to PROCESSING. A repeat is accepted and changes nothing."""
    organization_id = queue.start(held=held, except_types=hooks.types_with_start_hooks())
    if organization_id is None:
        require_verified(held.credential)
        organization_id = _start_with_hooks(held)
    if organization_id is not None:
        announce(job_id=held.job_id, organization_id=organization_id)


def heartbeat(*, held: Held) -> HeartbeatAnswer:
    lease_seconds = settings.SLIPWAY_LEASE_SECONDS
    answer = queue.heartbeat(held=held, lease_seconds=lease_seconds)
    if answer is None:
        require_verified(held.credential)
        raise StaleClaim
    cancel, drain = answer
    return HeartbeatAnswer(lease_seconds=lease_seconds, cancel=cancel, drain=drain)


def finish_attempt(*, held: Held, runner: KnownRunner, report: StatusReport) -> JobStatus:
    """Accept an attempt's one final report, and move the job as the tables of `lifecycle` say."""
    _require_storable(report)
    sensitive, report = report.sensitive_outputs or {}, _without_secrets(report)
    digest = _digest(report)
    moved = None
    for _ in range(2):
        # A person may cancel the job after it was read; the second time it is not queued again.
        ending, delay = _ending(held, report)
        moved = end(
            claim_id=held.claim_id,
            held=held,
            ending=ending,
            attempt=_attempt_end(report, digest),
            actor=queue.Actor(ActorKind.RUNNER, runner.id, runner.name),
            retry_delay_seconds=delay,
            sensitive_outputs=sensitive,
        )
        if moved is not None or not ending.requeues:
            break
    if moved is None:
        require_verified(held.credential)
        return _explain_no_move(held, digest, report)
    forget_secrets(held.claim_id)
    return JobStatus(moved.status)


def retry_delay(retry_count: int) -> float:
    """Exponential backoff with jitter: between half and all of the doubled delay."""
    delay: float = min(RETRY_BASE_SECONDS * 2**retry_count, RETRY_MAX_SECONDS)
    return delay * random.uniform(0.5, 1.0)  # noqa: S311  spreads load, guards nothing


def _claim(runner: KnownRunner, request: ClaimRequest) -> queue.Claimed | None:
    return queue.claim(
        runner_id=runner.id,
        organization_id=runner.organization_id,
        pool_ids=runner.pool_ids,
        types=request.types,
        claim_key=UUID(request.claim_key),
        credential=runner.credential,
        lease_seconds=settings.SLIPWAY_LEASE_SECONDS,
    )


def _claim_answer(held: queue.Claimed) -> Claim:
    snapshot = orjson.loads(held.config_snapshot)
    revealed = reveal(snapshot, organization_id=held.organization_id)
    fields = _claim_fields(_claimed_job(held, snapshot), held.claim_id)
    environment = revealed.environment | fields.pop("environment")
    return Claim(
        job_id=str(held.id),
        job_number=held.number,
        type=held.type,
        claim_id=str(held.claim_id),
        attempt=held.attempt_count,
        lease_seconds=settings.SLIPWAY_LEASE_SECONDS,
        timeout_seconds=held.timeout_seconds,
        next_log_seq=held.log_next_seq,
        organization=held.organization,
        spec_id=str(held.spec_id) if held.spec_id else None,
        spec=held.spec,
        snapshot=snapshot,
        snapshot_hash=held.snapshot_hash,
        variables=revealed.variables,
        environment=environment,
        sensitive_variables=revealed.sensitive + fields.pop("sensitive_variables"),
        **{"plan": None, "state": None, **fields},
    )


def _claim_fields(job: Job, claim_id: UUID) -> dict[str, Any]:
    """Collect the fields that other packages give. Several may add to the environment."""
    fields: dict[str, Any] = {}
    environment: dict[str, str] = {}
    sensitive: list[str] = []
    for hook in hooks.claim_fields:
        more = hook(job, claim_id)
        environment |= more.pop("environment", {})
        sensitive += more.pop("sensitive_variables", [])
        fields = hooks.add_fields(fields, more)
    return {**fields, "environment": environment, "sensitive_variables": sensitive}


def _claimed_job(held: queue.Claimed, snapshot: dict[str, Any]) -> Job:
    """Make the job from the columns of its claim; a hook that reads another column loads it.

    `Job.from_db` would go through each of the model's fields, at each claim.
    """
    job = Job.__new__(Job)
    job._state = ModelState()
    job._state.adding, job._state.db = False, DEFAULT_DB_ALIAS
    job.__dict__.update(
        id=held.id,
        organization_id=held.organization_id,
        number=held.number,
        type=held.type,
        spec_id=held.spec_id,
        plan_id=held.plan_id,
        snapshot_hash=held.snapshot_hash,
        config_snapshot=snapshot,
    )
    return job


def _start_with_hooks(held: Held) -> UUID | None:
    """Return the job's organization, or None when the job is already PROCESSING."""
    with transaction.atomic():
        organization_id = queue.start(held=held)
        if organization_id is None:
            status = _status_if_held(held)
            if status != PROCESSING:
                raise MoveRefused(f"The job is {status}; only a CLAIMED one can start.")
            return None
        job = Job.objects.select_related("plan").get(pk=held.job_id)
        for hook in hooks.before_start[job.type]:
            hook(job)
    return organization_id


def _ending(held: Held, report: StatusReport) -> tuple[Ending, float]:
    """The ending that a report stands for, and the delay before the next try.

    A success depends on nothing but the report, so the job is not read for it.
    """
    if report.status == SUCCESS:
        return _as_reported(report), 0.0
    require_verified(held.credential)
    job = _jobs_held_by(held).defer("config_snapshot").first()
    if job is None:
        return _as_reported(report), 0.0  # the claim is gone, and the statement will say so
    if report.status == FAILED:
        ending = _after_failure(job, report)
        return ending, retry_delay(job.retry_count) if ending.requeues else 0.0
    if not job.cancel_reason:
        return _as_reported(report), 0.0
    stopped = STOPPED[CancelReason(job.cancel_reason)]
    return replace(stopped, error_message=report.error_message or stopped.error_message), 0.0


def _as_reported(report: StatusReport) -> Ending:
    move = REPORT_MOVES[JobStatus(report.status)]
    return Ending(move, error_code=report.error_code, error_message=report.error_message)


def _after_failure(job: Job, report: StatusReport) -> Ending:
    return after_failure(
        type=job.type,
        retry_count=job.retry_count,
        max_retries=job.max_retries,
        fatal=report.fatal,
        cancel_reason=job.cancel_reason,
        error_code=report.error_code,
        error_message=report.error_message,
    )


def _without_secrets(report: StatusReport) -> StatusReport:
    """Return the report as it is stored and digested: without values, so that nobody can guess them."""
    result = {key: value for key, value in (report.result or {}).items() if key != "sensitive_outputs"}
    if isinstance(outputs := result.get("outputs"), dict):
        result["outputs"] = {name: _without_value(output) for name, output in outputs.items()}
    return replace(report, sensitive_outputs=None, result=None if report.result is None else result)


def _without_value(output: Any) -> Any:
    if not isinstance(output, dict) or not output.get("sensitive"):
        return output
    return {key: value for key, value in output.items() if key != "value"}


def _require_storable(report: StatusReport) -> None:
    if len(report.error_code or "") > MAX_ERROR_CODE_CHARS:
        raise InvalidMessage(f"error_code: has at most {MAX_ERROR_CODE_CHARS} characters")
    if report.log is not None and not 0 < report.log.next_seq < 2**63:
        raise InvalidMessage("log.next_seq: expected the number after the last line, from 1")
    if report.log is not None and len(report.log.chain) != len(EMPTY_CHAIN):
        raise InvalidMessage(f"log.chain: expected {len(EMPTY_CHAIN)} hexadecimal digits")


def _attempt_end(report: StatusReport, digest: str) -> queue.AttemptEnd:
    return queue.AttemptEnd(
        outcome=OUTCOMES[report.status],
        reason=report.error_message or "",
        result=report.result,
        report_sha256=digest,
        reported_log_next_seq=report.log.next_seq if report.log else None,
        reported_log_chain=report.log.chain if report.log else "",
    )


def _digest(report: StatusReport) -> str:
    return hashlib.sha256(orjson.dumps(report, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _answer_repeat(held: Held, digest: str) -> JobStatus:
    """Answer a report whose claim is gone: its repeat like the first time, any other is refused."""
    attempt = (
        Attempt.objects.select_related("job")
        .filter(pk=held.claim_id, job_id=held.job_id, runner_id=held.runner_id)
        .first()
    )
    if attempt is None or not attempt.report_sha256:
        raise StaleClaim
    if attempt.report_sha256 != digest:
        raise ReportConflict
    return JobStatus(attempt.job.status)


def _explain_no_move(held: Held, digest: str, report: StatusReport) -> JobStatus:
    status = _jobs_held_by(held).values_list("status", flat=True).first()
    if status == CLAIMED:
        raise MoveRefused(f"The job is CLAIMED and cannot become {report.status}. Report PROCESSING first.")
    return _answer_repeat(held, digest)


def _jobs_held_by(held: Held) -> QuerySet[Job]:
    return Job.objects.filter(pk=held.job_id, claim__claim_id=held.claim_id, claim__runner_id=held.runner_id)


def _status_if_held(held: Held) -> str:
    status = _jobs_held_by(held).values_list("status", flat=True).first()
    if status is None:
        raise StaleClaim
    return status
