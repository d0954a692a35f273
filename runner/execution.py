"""Runs one attempt: from the claim to exactly one final report, whatever happens in between."""

from __future__ import annotations

import errno
import logging
import os
import signal
from collections.abc import Callable

from runner.attempt import Attempt
from runner.client import ConsoleAway, Refused, StaleClaim
from runner.heartbeat import Heartbeat
from runner.outcome import Outcome, StepFailed, failure, interruption, success
from runner.protocol import JobStatus, LogLevel, StatusReport
from runner.steps import steps_of
from runner.stopping import Stopped, StopReason
from runner.terraform.watchdog import groups_of, signal_groups
from runner.unsaved_state import rescue_state

logger = logging.getLogger(__name__)

#: Refusals of the job and not of the attempt; their sentences are meant for people.
_REFUSALS = ("plan_stale", "plan_spent", "spec_expired", "gate_closed")


def run_attempt(attempt: Attempt, *, on_drain: Callable[[], None]) -> None:
    """Make the attempt and report on it; returns when nothing of it is left on this machine."""
    claim = attempt.claim
    logger.info("Job %d: %s, attempt %d.", claim.job_number, claim.type, claim.attempt)
    heartbeat = Heartbeat(
        client=attempt.client,
        claim=claim,
        lease=attempt.lease,
        stop=attempt.stop,
        on_renewal=attempt.watch,
        on_drain=on_drain,
    )
    try:
        heartbeat.first_beat()
    except (Refused, Stopped) as reason:
        # Nothing ran: the job goes back to the queue when the lease ends.
        logger.warning("Job %d was not started: %s", claim.job_number, reason)
        return
    heartbeat.start()
    try:
        _run_and_report(attempt, heartbeat)
    finally:
        heartbeat.end()
        attempt.forget()


def _run_and_report(attempt: Attempt, heartbeat: Heartbeat) -> None:
    attempt.log.start()
    outcome = _run_steps(attempt)
    _clear_up(attempt)
    _log_outcome(attempt, outcome)
    receipt = attempt.log.close()
    mask = attempt.redactor.mask
    report = StatusReport(
        claim_id=attempt.claim.claim_id,
        status=outcome.status,
        result=attempt.redactor.mask_all(outcome.result),
        sensitive_outputs=attempt.sensitive_outputs or None,
        error_code=outcome.error_code,
        error_message=mask(outcome.error_message) if outcome.error_message else None,
        fatal=outcome.fatal,
        log=receipt,
    )
    heartbeat.is_over = _send_report(attempt, report)


def _run_steps(attempt: Attempt) -> Outcome:
    """Run the steps; every way in which they can end becomes one outcome."""
    try:
        _report_start(attempt)
        for step in steps_of(attempt.claim):
            # After an apply there is nothing left to stop, only to report.
            if not attempt.has_applied:
                attempt.stop.check()
            step(attempt)
        return success(attempt.result)
    except Stopped as stop:
        return _interruption(attempt, stop.reason)
    except StepFailed as error:
        return failure(error.code, str(error), fatal=error.fatal, result=attempt.result)
    except StaleClaim as error:
        return failure("stale_claim", str(error))
    except (Refused, ConsoleAway) as error:
        if reason := attempt.stop.reason:
            return _interruption(attempt, reason)
        if isinstance(error, Refused) and error.code in _REFUSALS:
            return failure(error.code, error.detail, fatal=True)
        return failure("console_refused", f"The console refused a step of {attempt.phase_name}: {error}")
    except Exception as error:
        number, phase = attempt.claim.job_number, attempt.phase_name
        if _is_full_disk(error):
            logger.error("Job %d: the disk is full during %s.", number, phase)
        else:
            logger.exception("Job %d: %s failed.", number, phase)
        return failure("runner_failed", _describe_error(error, phase))


def _report_start(attempt: Attempt) -> None:
    report = StatusReport(claim_id=attempt.claim.claim_id, status=JobStatus.PROCESSING)
    attempt.client.report(attempt.claim.job_id, report, give_up=attempt.stop.requested)
    terraform = attempt.equipment.terraform
    attempt.log.write(f"Runner {attempt.equipment.name}, {terraform.product} {terraform.version}")


def _interruption(attempt: Attempt, reason: StopReason) -> Outcome:
    return interruption(
        reason,
        phase=attempt.phase_name,
        runner=attempt.equipment.name,
        timeout_seconds=attempt.claim.timeout_seconds,
    )


def _clear_up(attempt: Attempt) -> None:
    # A process that left Terraform's process group still has the marker.
    signal_groups(groups_of(attempt.marker), signal.SIGKILL)
    attempt.cleanup.close()
    rescue_state(attempt)
    attempt.workdir.remove()


def _log_outcome(attempt: Attempt, outcome: Outcome) -> None:
    type = attempt.claim.type
    if outcome.status == JobStatus.SUCCESS:
        attempt.log.write(f"{type} succeeded")
    else:
        attempt.log.write(f"{type} {outcome.status.lower()}: {outcome.error_message}", LogLevel.ERROR)


def _send_report(attempt: Attempt, report: StatusReport) -> bool:
    """Send the final report; returns whether the console accepted it."""
    number = attempt.claim.job_number
    try:
        answer = attempt.client.report(attempt.claim.job_id, report, give_up=attempt.stop.has_given_up)
    except StaleClaim:
        logger.warning("Job %d: the console has moved on; %s is not recorded.", number, report.status)
        return False
    except (Refused, ConsoleAway) as error:
        logger.error("Job %d: the report %s was not accepted: %s", number, report.status, error)
        return False
    logger.info("Job %d: %s, now %s.", number, report.status, answer.status)
    return True


def _is_full_disk(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _describe_error(error: Exception, phase: str) -> str:
    """Put an unexpected error on one line for people; the runner's own log has the rest."""
    if _is_full_disk(error):
        return f"The runner's disk is full (during {phase}). Free some space, then try again."
    text = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return f"The runner failed during {phase}: {type(error).__name__}: {text}. Its own log says more."
