"""The ways in which an attempt ends, and their sentences in its final report."""

from __future__ import annotations

import dataclasses
from typing import Any

from runner.protocol import JobStatus
from runner.stopping import StopReason


class StepFailed(Exception):
    """A step could not do its work. `fatal` means that the same attempt again cannot help."""

    def __init__(self, code: str, message: str, *, fatal: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.fatal = fatal


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    status: JobStatus
    result: dict[str, Any] | None = None
    error_code: str | None = None
    error_message: str | None = None
    fatal: bool = False


def success(result: dict[str, Any]) -> Outcome:
    return Outcome(status=JobStatus.SUCCESS, result=result)


def failure(code: str, message: str, *, fatal: bool = False, result: dict[str, Any] | None = None) -> Outcome:
    return Outcome(
        status=JobStatus.FAILED, error_code=code, error_message=message, fatal=fatal, result=result or None
    )


def interruption(reason: StopReason, *, phase: str, runner: str, timeout_seconds: int) -> Outcome:
    status = JobStatus.CANCELLED if reason in _CANCELLED else JobStatus.FAILED
    message = _SENTENCES[reason].format(phase=phase, runner=runner, timeout_seconds=timeout_seconds)
    return Outcome(status=status, error_code=reason.value, error_message=message)


_CANCELLED = (StopReason.CANCELLED, StopReason.TIMEOUT_EXCEEDED)

_SENTENCES = {
    StopReason.CANCELLED: "Cancelled during {phase}.",
    StopReason.TIMEOUT_EXCEEDED: "Stopped during {phase}: the job's limit of {timeout_seconds} s has passed.",
    StopReason.RUNNER_STOPPED: "Runner {runner} was stopped during {phase}.",
    StopReason.LEASE_LOST: "Stopped during {phase}: runner {runner} could not renew its hold on the job.",
}
