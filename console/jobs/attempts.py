"""What runners do to jobs: claim them, keep them alive, report their end."""

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
from console.jobs.lifecycle import (
    CANCELLED,
    CLAIMED,
    FAILED,
    PROCESSING,
    QUEUED,
    REPORT_MOVES,
    STOPPED,
    SUCCESS,
    Ending,
    after_failure,
)
from console.jobs.log.masking import forget_secrets, remember_secrets
from console.jobs.models import Attempt, Job, Outcome
from console.jobs.queue import Held
from console.live import topics
from console.live.publish import publish_on_commit
from console.runners.recognition import require_verified
from console.runners.services import KnownRunner
from runner.protocol import (
    EMPTY_CHAIN,
    CancelReason,
    Claim,
    ClaimRequest,
    HeartbeatAnswer,
    JobStatus,
    JobType,
    StatusReport,
)
from specs.variables import reveal

#: The first retry waits about this long, each later one twice as long as the one before.
RETRY_BASE_SECONDS = 5.0


RETRY_MAX_SECONDS = 300.0


#: What the job's column holds.
MAX_ERROR_CODE_CHARS = 60


logger = logging.getLogger("slipway.jobs")


OUTCOMES = {"SUCCESS": Outcome.SUCCEEDED, "FAILED": Outcome.FAILED, "CANCELLED": Outcome.CANCELLED}


def claim_job(*, runner: KnownRunner, request: ClaimRequest) -> Claim | None:
    """Hand the runner the next job it may run, with everything it needs."""
    try:
        held = _claim(runner, request)
    except IntegrityError:
        # The same request was answered twice at once, and the other one made the claim: now it is there.
        held = _claim(runner, request)
    if held is None:
        return None
    _announce(held.id, held.organization_id)
    try:
        answer = _claim_answer(held)
    except SlipwayError as refusal:
        _refuse(held, refusal)
        return None
    except ValueError:
        # It would fail in the hands of every runner, and stand in the way of all jobs behind it.
        logger.exception("job %s cannot be handed out", held.id)
        _refuse(held, SnapshotUnreadable())
        return None
    remember_secrets(answer)
    return answer


def _refuse(held: queue.Claimed, refusal: SlipwayError) -> None:
    """A room has found, at the last moment, that the job may not run: it fails before anything happens."""
    moved = queue.end_attempt(
        claim_id=held.claim_id,
        ending=Ending("fail", error_code=refusal.code, error_message=str(refusal)),
        attempt=queue.AttemptEnd(outcome=Outcome.FAILED, reason=str(refusal)),
        actor=queue.Actor(ActorKind.SYSTEM, None, "slipway"),
        seen_status=CLAIMED,
    )
    if moved is not None:
        announce_moved(moved)


def start_attempt(*, held: Held) -> None:
    """CLAIMED → PROCESSING. A repeat is accepted and changes nothing."""
    organization_id = queue.start(held=held, except_types=_types_with(hooks.before_start))
    if organization_id is None:
        require_verified(held.credential)
        organization_id = _start_with_hooks(held)
    if organization_id is not None:
        _announce(held.job_id, organization_id)


def heartbeat(*, held: Held) -> HeartbeatAnswer:
    lease_seconds = settings.SLIPWAY_LEASE_SECONDS
    answer = queue.heartbeat(held=held, lease_seconds=lease_seconds)
    if answer is None:
        require_verified(held.credential)
        raise StaleClaim
    cancel, drain = answer
    return HeartbeatAnswer(lease_seconds=lease_seconds, cancel=cancel, drain=drain)


def finish_attempt(*, held: Held, runner: KnownRunner, report: StatusReport) -> JobStatus:
    """Take an attempt's one final report, and move the job as the tables say."""
    _require_storable(report)
    sensitive, report = report.sensitive_outputs or {}, _without_secrets(report)
    digest = _digest(report)
    attempt, actor = _attempt_end(report, digest), queue.Actor(ActorKind.RUNNER, runner.id, runner.name)
    moved = None
    if report.status == SUCCESS:
        moved = queue.end_attempt(
            claim_id=held.claim_id,
            held=held,
            ending=_as_reported(report),
            attempt=attempt,
            actor=actor,
            except_types=_types_that_leave_something(report),
        )
    if moved is None:
        require_verified(held.credential)
        moved = _finish_in_steps(held, report, attempt, actor, sensitive)
    if moved is None:
        # Somebody may have asked the job to stop after it was read; then it is not tried again.
        moved = _finish_in_steps(held, report, attempt, actor, sensitive)
    if moved is None:
        return _why_not_moved(held, digest, report)
    forget_secrets(held.claim_id)
    announce_moved(moved)
    return JobStatus(moved.status)


def announce_moved(moved: queue.Moved) -> None:
    _announce(moved.job_id, moved.organization_id)
    if moved.status == QUEUED:
        publish_on_commit(topics.pool(moved.pool_id))


def retry_delay(retry_count: int) -> float:
    """Exponential backoff with jitter: between half and all of the doubled delay."""
    delay: float = min(RETRY_BASE_SECONDS * 2**retry_count, RETRY_MAX_SECONDS)
    return delay * random.uniform(0.5, 1.0)  # noqa: S311  spreads load, guards nothing


def _announce(job_id: UUID, organization_id: UUID) -> None:
    publish_on_commit(topics.job(job_id), topics.organization(organization_id, "jobs"))


def _types_with(hooked: dict[str, list[Any]]) -> list[str]:
    """The types for which a room has added something: one statement is not enough for them."""
    return [type for type, added in hooked.items() if added]


def _types_that_leave_something(report: StatusReport) -> list[str]:
    """A PLAN that made no plan leaves nothing behind, so one statement is enough for it."""
    types = _types_with(hooks.on_success)
    made_a_plan = bool((report.result or {}).get("plan_id"))
    return types if made_a_plan else [type for type in types if type != JobType.PLAN]


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
    fields: dict[str, Any] = {
        "plan": None,
        "state": None,
        "environment": revealed.environment,
        "sensitive_variables": revealed.sensitive,
    }
    job = _claimed_job(held, snapshot)
    for hook in hooks.claim_fields:
        fields = _merged(fields, hook(job, held.claim_id))
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
        **fields,
    )


def _merged(fields: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """What rooms say of the environment stands side by side; of anything else the last word counts."""
    environment = fields["environment"] | more.get("environment", {})
    sensitive = fields["sensitive_variables"] + more.get("sensitive_variables", [])
    return fields | more | {"environment": environment, "sensitive_variables": sensitive}


def _claimed_job(held: queue.Claimed, snapshot: dict[str, Any]) -> Job:
    """What a claim tells of its job; everything else is deferred, and read when a hook asks for it.

    Not by `Job.from_db`, which looks at each of the model's fields, at each claim.
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
    """The organization of the job, or None when it runs already."""
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


def _finish_in_steps(
    held: Held,
    report: StatusReport,
    attempt: queue.AttemptEnd,
    actor: queue.Actor,
    sensitive_outputs: dict[str, Any],
) -> queue.Moved | None:
    """For what depends on the job: a failure may be tried again, a success may leave something behind."""
    job = _held_jobs(held).defer("config_snapshot").first()
    if job is None:
        return None
    ending = _ending(job, report)
    with transaction.atomic():
        moved = queue.end_attempt(
            claim_id=held.claim_id,
            held=held,
            ending=ending,
            attempt=attempt,
            actor=actor,
            retry_delay_seconds=retry_delay(job.retry_count) if ending.requeues else 0.0,
        )
        if moved is not None and moved.status == SUCCESS:
            for hook in hooks.on_success[job.type]:
                hook(job, {**(report.result or {}), "sensitive_outputs": sensitive_outputs})
        if moved is not None and moved.status == FAILED:
            for hook in hooks.on_failure[job.type]:
                hook(job, {**(report.result or {}), "error": report.error_message or ""})
    return moved


def _ending(job: Job, report: StatusReport) -> Ending:
    if report.status == FAILED:
        return _after_failure(job, report)
    if report.status == CANCELLED and job.cancel_reason:
        asked = STOPPED[CancelReason(job.cancel_reason)]
        return replace(asked, error_message=report.error_message or asked.error_message)
    return _as_reported(report)


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
    """What may be stored of the report, and what its digest is of: nobody can try out values on it."""
    result = {key: value for key, value in (report.result or {}).items() if key != "sensitive_outputs"}
    if isinstance(outputs := result.get("outputs"), dict):
        result["outputs"] = {name: _output_to_show(output) for name, output in outputs.items()}
    return replace(report, sensitive_outputs=None, result=None if report.result is None else result)


def _output_to_show(output: Any) -> Any:
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


def _repeated_report(held: Held, digest: str) -> JobStatus:
    """The claim is gone: the same report again gets the same answer, anything else is refused."""
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


def _why_not_moved(held: Held, digest: str, report: StatusReport) -> JobStatus:
    status = _held_jobs(held).values_list("status", flat=True).first()
    if status == CLAIMED:
        raise MoveRefused(f"The job is CLAIMED and cannot become {report.status}. Report PROCESSING first.")
    return _repeated_report(held, digest)


def _held_jobs(held: Held) -> QuerySet[Job]:
    return Job.objects.filter(pk=held.job_id, claim__claim_id=held.claim_id, claim__runner_id=held.runner_id)


def _status_if_held(held: Held) -> str:
    status = _held_jobs(held).values_list("status", flat=True).first()
    if status is None:
        raise StaleClaim
    return status
