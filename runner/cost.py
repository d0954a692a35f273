"""The cost of a plan, estimated by Infracost where the operator has set it up on the runner.

`SLIPWAY_INFRACOST` is the program (else `infracost` on the PATH), `INFRACOST_API_KEY` its key; the runner's
other INFRACOST_ variables reach it too, such as the address of another pricing service. It sees the plan with
secrets masked, and never the state's credentials. An estimate that fails does not fail the PLAN.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from runner.attempt import Attempt
from runner.protocol import LogLevel
from runner.stopping import Lease, Stop
from runner.terraform import process
from runner.terraform.environment import PASSED
from runner.terraform.watchdog import MARKER_VARIABLE

#: A price list is a network request; a plan waits no longer than this for it.
PATIENCE_SECONDS = 60.0
KEY = "INFRACOST_API_KEY"


class NoEstimate(Exception):
    """An estimate could not be made; the message says why."""


def estimate_cost(attempt: Attempt) -> None:
    """Add the monthly cost before and after to the report of a PLAN."""
    environ = attempt.equipment.environ
    program = find_infracost(environ)
    if program is None:
        return
    attempt.redactor.add(environ.get(KEY))
    with attempt.phase("cost", "Estimating the cost"):
        try:
            attempt.result["cost"] = _estimate(attempt, program)
        except NoEstimate as reason:
            attempt.log.write(f"There is no cost estimate: {reason}", LogLevel.WARN)
            attempt.result["cost"] = {"error": str(reason)}


def find_infracost(environ: Mapping[str, str]) -> str | None:
    """Return the program that the operator named or installed; None without such a setup."""
    if program := environ.get("SLIPWAY_INFRACOST"):
        return program
    return shutil.which("infracost", path=environ.get("PATH")) if environ.get(KEY) else None


def infracost_args(program: str, *, plan: Path) -> list[str]:
    return [program, "breakdown", "--path", str(plan), "--format", "json", "--no-color"]


def read_estimate(text: str) -> dict[str, str]:
    """Convert Infracost's answer for a PLAN's report. Amounts are texts: money is not a float."""
    try:
        answer = json.loads(text)
        before, after = _amount(answer, "pastTotalMonthlyCost"), _amount(answer, "totalMonthlyCost")
        stated = answer.get("diffTotalMonthlyCost") is not None
        delta = _amount(answer, "diffTotalMonthlyCost") if stated else after - before
        currency = str(answer.get("currency") or "USD")
    except (ValueError, TypeError, AttributeError, InvalidOperation) as error:
        raise NoEstimate(f"Infracost's answer cannot be read ({type(error).__name__}).") from error
    return {
        "currency": currency,
        "monthly_before": str(before),
        "monthly_after": str(after),
        "monthly_delta": str(delta),
    }


def _amount(answer: dict[str, Any], key: str) -> Decimal:
    """Read an amount; null, for resources without a price, counts as zero."""
    amount = Decimal(str(answer.get(key) or "0"))
    if not amount.is_finite():
        raise ValueError(key)
    return amount


def _estimate(attempt: Attempt, program: str) -> dict[str, str]:
    if not attempt.equipment.environ.get(KEY):
        raise NoEstimate(f"{KEY} is not set on runner {attempt.equipment.name}.")
    stdout, stderr = attempt.workdir.scratch / "cost.json", attempt.workdir.scratch / "cost.log"
    try:
        code = process.capture(
            infracost_args(program, plan=attempt.workdir.scratch / "plan.json"),
            cwd=attempt.workdir.scratch,
            env=_environment(attempt),
            stop=_Patience(attempt.stop, attempt.lease),
            stdout=stdout,
            stderr=stderr,
            leash=attempt.leash(),
        )
    except OSError as error:
        raise NoEstimate(f"{program} cannot be started: {error.strerror}.") from error
    attempt.stop.check()
    if code != 0:
        _log_errors(attempt, stderr)
        raise NoEstimate(f"Infracost ended with exit code {code}; see the log.")
    return read_estimate(stdout.read_text("utf-8", "replace"))


def _environment(attempt: Attempt) -> dict[str, str]:
    passed = (*PASSED, "HOME", "TMPDIR", MARKER_VARIABLE)
    environ = {name: value for name, value in attempt.environ.items() if name in passed}
    own = {name: value for name, value in attempt.equipment.environ.items() if name.startswith("INFRACOST_")}
    return {**environ, **own, "INFRACOST_SKIP_UPDATE_CHECK": "true"}


def _log_errors(attempt: Attempt, stderr: Path) -> None:
    for line in stderr.read_text("utf-8", "replace").splitlines()[:50]:
        attempt.log.write(line, LogLevel.WARN)


class _Patience(Stop):
    """The attempt's own stop, or the end of the time for an estimate."""

    def __init__(self, attempts: Stop, lease: Lease) -> None:
        super().__init__(lease=lease, timeout_seconds=PATIENCE_SECONDS, grace_seconds=2.0)
        self._attempts = attempts

    def requested(self) -> bool:
        if self._attempts.requested():
            self.cancel()
        return super().requested()
