"""The life of a job in tables: every allowed move, and what a failed or lost attempt means."""

from dataclasses import dataclass
from typing import Final

from console.jobs.types import kind_of
from runner.protocol import FINAL_STATUSES, CancelReason, JobStatus

QUEUED, CLAIMED, PROCESSING = JobStatus.QUEUED, JobStatus.CLAIMED, JobStatus.PROCESSING
SUCCESS, FAILED, CANCELLED = JobStatus.SUCCESS, JobStatus.FAILED, JobStatus.CANCELLED

ACTIVE_STATUSES: Final = (QUEUED, CLAIMED, PROCESSING)

#: Every move a job may make, and from where. A pair that is absent is refused.
MOVES: Final[dict[str, dict[JobStatus, JobStatus]]] = {
    "claim": {QUEUED: CLAIMED},
    "start": {CLAIMED: PROCESSING},
    "succeed": {PROCESSING: SUCCESS},
    "fail": {CLAIMED: FAILED, PROCESSING: FAILED},
    "cancel": {QUEUED: CANCELLED, CLAIMED: CANCELLED, PROCESSING: CANCELLED},
    "requeue": {CLAIMED: QUEUED, PROCESSING: QUEUED},
}

#: The move by which an attempt reports each final status.
REPORT_MOVES: Final = {SUCCESS: "succeed", FAILED: "fail", CANCELLED: "cancel"}


def sources(move: str) -> list[str]:
    """The statuses that a move may start from."""
    return [status.value for status in MOVES[move]]


def is_final(status: str) -> bool:
    return status in FINAL_STATUSES


@dataclass(frozen=True, slots=True)
class Ending:
    """The effect of an attempt's end on its job: the move, its cost in retries, the message for people."""

    move: str
    costs_retry: bool = False
    error_code: str | None = None
    error_message: str | None = None

    @property
    def requeues(self) -> bool:
        return self.move == "requeue"


CANCELLED_BY_PERSON = Ending("cancel", error_code="cancelled", error_message="Cancelled by a person.")
TIMED_OUT = Ending("cancel", error_code="timeout_exceeded", error_message="Timeout exceeded.")

#: The ending of a job that was asked to stop, by the reason. It is never tried again.
STOPPED = {CancelReason.PERSON: CANCELLED_BY_PERSON, CancelReason.TIMEOUT: TIMED_OUT}


def after_loss(
    *, type: str, status: str, retry_count: int, max_retries: int, cancel_reason: str, runner: str
) -> Ending:
    """Return the ending of a job whose lease ran out."""
    if cancel_reason:
        return STOPPED[CancelReason(cancel_reason)]
    if status == CLAIMED:
        return Ending("requeue")  # nothing ran, so it costs no retry
    if kind_of(type).changes_infrastructure:
        return Ending(
            "fail",
            error_code="runner_lost",
            error_message=f"Runner {runner} was lost while {type} ran: infrastructure may have changed. "
            "Check the log and the state, then retry.",
        )
    if retry_count < max_retries:
        return Ending("requeue", costs_retry=True)
    return Ending(
        "fail", error_code="runner_lost", error_message=f"Runner {runner} was lost; no retries are left."
    )


def after_failure(
    *,
    type: str,
    retry_count: int,
    max_retries: int,
    fatal: bool,
    cancel_reason: str,
    error_code: str | None,
    error_message: str | None,
) -> Ending:
    """Return the ending of a job whose attempt failed: another try, where that is safe and may help."""
    if cancel_reason:
        return STOPPED[CancelReason(cancel_reason)]
    retryable = not fatal and not kind_of(type).changes_infrastructure
    if retryable and retry_count < max_retries:
        return Ending("requeue", costs_retry=True)
    return Ending(
        "fail", error_code=error_code or "failed", error_message=error_message or "The attempt failed."
    )
