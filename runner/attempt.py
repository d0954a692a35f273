"""One attempt at one job: from the claim to exactly one final report, whatever happens in between."""

from __future__ import annotations

import dataclasses
import errno
import logging
import os
import signal
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

from runner import clock, process
from runner.client import ConsoleAway, ConsoleClient, Refused, StaleClaim, errored_state_path
from runner.config import Settings
from runner.environment import secret_values
from runner.guard import Guard, groups_of, processes_of, signal_groups
from runner.heartbeat import Heartbeat
from runner.identity import HeldIdentity
from runner.log import LogPipe
from runner.outcome import Outcome, StepFailed, failed, stopped, succeeded
from runner.protocol import (
    ERRORED_STATE,
    Claim,
    JobStatus,
    LogLevel,
    RunnerFacts,
    StateAccess,
    StatusReport,
    git_login,
)
from runner.redact import Redactor
from runner.relay import Relay
from runner.steps import steps_of
from runner.stopping import Lease, Stop, Stopped
from runner.terraform import Diagnostic, Event, OutputReader
from runner.terraform_binary import TerraformBinary
from runner.workdir import DataDirectory

logger = logging.getLogger(__name__)

#: What a step writes around each event of a command: see `last_step`.
Around = Callable[[Event], Iterable[Event]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What all attempts of a runner share."""

    settings: Settings
    name: str
    facts: RunnerFacts
    client: ConsoleClient
    terraform: TerraformBinary
    data: DataDirectory
    guard: Guard
    relay: Relay
    environ: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What one Terraform command did."""

    exit_code: int
    errors: list[Diagnostic]
    summary: dict[str, Any]

    def failure(self, phase: str) -> StepFailed:
        if not self.errors:
            return StepFailed("terraform_failed", f"Terraform {phase} {_ended(self.exit_code)}.")
        fatal = any(error.is_configuration_error for error in self.errors)
        # The first that says where; Terraform may open with a general remark.
        told = next((error for error in self.errors if error.place), self.errors[0])
        return StepFailed("terraform_failed", told.sentence, fatal=fatal)


class Attempt:
    """Holds what the steps of one job work with, and runs them."""

    def __init__(self, claim: Claim, equipment: Equipment, *, on_drain: Callable[[], None]) -> None:
        self.claim = claim
        self.equipment = equipment
        self.client = equipment.client
        self.marker = uuid.uuid4().hex
        self.lease = Lease(sent_at=clock.now(), lease_seconds=claim.lease_seconds)
        self.stop = Stop(
            lease=self.lease,
            timeout_seconds=claim.timeout_seconds,
            grace_seconds=equipment.settings.stop_grace_seconds,
        )
        self.workdir = equipment.data.workdir(self.marker)
        self.plan_file = self.workdir.scratch / "plan"
        self.redactor = Redactor(self._secrets())
        self.environ: Mapping[str, str] = {}
        self.identity: HeldIdentity | None = None
        self.state_lineage = ""
        self.state_serial = 0
        self.result: dict[str, Any] = {}
        #: The one thing in a report that is not masked; the console seals it.
        self.sensitive_outputs: dict[str, Any] = {}
        self.has_applied = False
        self.phase_name = "the start"
        self._heartbeat = Heartbeat(
            client=self.client,
            claim=claim,
            lease=self.lease,
            stop=self.stop,
            on_renewal=self._watch,
            on_drain=on_drain,
        )

    def run(self) -> None:
        """Make the attempt and report on it; returns when nothing of it is left on this machine."""
        logger.info("Job %d: %s, attempt %d.", self.claim.job_number, self.claim.type, self.claim.attempt)
        try:
            self._heartbeat.first_beat()
        except (Refused, Stopped) as reason:
            # Nothing ran: the job goes back to the queue when the lease ends.
            logger.warning("Job %d was not started: %s", self.claim.job_number, reason)
            return
        self._heartbeat.start()
        try:
            self._run_and_report()
        finally:
            self._heartbeat.end()
            self.equipment.guard.forget(self.marker)
            self.equipment.relay.forget(self.marker)

    def open_state(self) -> StateAccess | None:
        """Where this attempt's Terraform finds its state: at the relay, which goes on to the console."""
        state = self.claim.state
        if state is None:
            return None
        address, lock_address = self.equipment.relay.open(
            self.marker,
            address=state.address,
            lock_address=state.lock_address,
            patient_until=self.lease.interrupt_at,
            ends_at=self.lease.expires_at,
        )
        return dataclasses.replace(state, address=address, lock_address=lock_address)

    def terraform(self, arguments: list[str], *, around: Around | None = None) -> CommandResult:
        """Run a command that talks; its output goes to the log while it runs, with what is said around it."""
        reader = OutputReader()

        def on_lines(lines: list[str]) -> None:
            events = map(reader.read, lines)
            self.log.write_events(chain.from_iterable(map(around, events)) if around else events, lines)

        code = process.stream(
            [self.equipment.terraform.path, *arguments],
            cwd=self.workdir.configuration,
            env=self.environ,
            stop=self.stop,
            scratch=self.workdir.scratch,
            on_lines=on_lines,
            leash=self.leash(),
        )
        return CommandResult(exit_code=code, errors=reader.errors, summary=reader.summary)

    def document(self, arguments: list[str]) -> bytes:
        """Run a command that answers with a document; its complaints go to the log."""
        stdout, stderr = self.workdir.scratch / "stdout", self.workdir.scratch / "stderr"
        code = process.capture(
            [self.equipment.terraform.path, *arguments],
            cwd=self.workdir.configuration,
            env=self.environ,
            stop=self.stop,
            stdout=stdout,
            stderr=stderr,
            leash=self.leash(),
        )
        if code == 0:
            return stdout.read_bytes()
        for line in stderr.read_text("utf-8", "replace").splitlines():
            self.log.write(line, LogLevel.ERROR)
        self.stop.check()
        raise StepFailed("terraform_failed", f"Terraform {' '.join(arguments[:2])} {_ended(code)}.")

    def leash(self) -> process.Leash:
        """What the next command is held by."""
        guard = self.equipment.guard
        return process.Leash(
            descriptors=guard.leash(self.marker),
            limits=self.equipment.settings.limits,
            on_interrupt=lambda: guard.is_interrupted(self.marker),
            is_alive=lambda pid: pid in processes_of(self.marker),
        )

    @contextmanager
    def phase(self, name: str, title: str) -> Iterator[None]:
        """A part of the work that people know by name."""
        self.stop.check()
        self.phase_name = name
        began = clock.now()
        self.log.write(title, data={"kind": "phase", "phase": name, "event": "start"})
        try:
            yield
        finally:
            seconds = round(clock.now() - began, 3)
            data = {"kind": "phase", "phase": name, "event": "end", "seconds": seconds}
            self.log.write(f"{name}: {seconds:.1f} s", LogLevel.DEBUG, data)

    def _run_and_report(self) -> None:
        self.log = LogPipe(
            send=partial(
                self.client.append_log, self.claim.job_id, self.claim.claim_id, give_up=self.stop.gave_up
            ),
            first_seq=self.claim.next_log_seq,
            redactor=self.redactor,
            spool_dir=self.equipment.data.work,
        )
        outcome = self._outcome()
        self._clear_up()
        self._say(outcome)
        receipt = self.log.close()
        self._report(
            outcome,
            StatusReport(
                claim_id=self.claim.claim_id,
                status=outcome.status,
                result=self.redactor.mask_all(outcome.result),
                sensitive_outputs=self.sensitive_outputs or None,
                error_code=outcome.error_code,
                error_message=self.redactor.mask(outcome.error_message) if outcome.error_message else None,
                fatal=outcome.fatal,
                log=receipt,
            ),
        )

    def _outcome(self) -> Outcome:
        """Run the steps; every way in which they can end becomes one outcome."""
        try:
            self._begin()
            for step in steps_of(self.claim):
                # After an apply there is nothing left to stop, only to tell.
                if not self.has_applied:
                    self.stop.check()
                step(self)
            return succeeded(self.result)
        except Stopped as stop:
            return stopped(
                stop.reason,
                phase=self.phase_name,
                runner=self.equipment.name,
                timeout_seconds=self.claim.timeout_seconds,
            )
        except StepFailed as error:
            return failed(error.code, str(error), fatal=error.fatal, result=self.result)
        except StaleClaim as error:
            return failed("stale_claim", str(error))
        except (Refused, ConsoleAway) as error:
            if reason := self.stop.reason:
                return stopped(
                    reason,
                    phase=self.phase_name,
                    runner=self.equipment.name,
                    timeout_seconds=self.claim.timeout_seconds,
                )
            if isinstance(error, Refused) and error.code in _REFUSALS:
                return failed(error.code, error.detail, fatal=True)
            return failed("console_refused", f"The console refused a step of {self.phase_name}: {error}")
        except Exception as error:
            if _is_full_disk(error):
                logger.error("Job %d: the disk is full during %s.", self.claim.job_number, self.phase_name)
            else:
                logger.exception("Job %d: %s failed.", self.claim.job_number, self.phase_name)
            return failed("runner_failed", _told(error, self.phase_name))

    def _begin(self) -> None:
        report = StatusReport(claim_id=self.claim.claim_id, status=JobStatus.PROCESSING)
        self.client.report(self.claim.job_id, report, give_up=self.stop.requested)
        terraform = self.equipment.terraform
        self.log.write(f"Runner {self.equipment.name}, {terraform.product} {terraform.version}")

    def _clear_up(self) -> None:
        # Whoever left Terraform's process group is still found by the marker.
        signal_groups(groups_of(self.marker), signal.SIGKILL)
        if self.identity:
            self.identity.close()
        self._keep_unsaved_state()
        self.workdir.remove()

    def _keep_unsaved_state(self) -> None:
        """Whatever went wrong before somebody could care for it: it is uploaded once the report is made."""
        errored = self.workdir.configuration / ERRORED_STATE
        if errored.exists():
            claim = self.claim
            kept = self.equipment.data.rescue(errored, job_id=claim.job_id, claim_id=claim.claim_id)
            self.log.write(
                f"Terraform could not save the state. Runner {self.equipment.name} keeps it as {kept}, and "
                f"uploads it to {errored_state_path(claim.job_id, claim.claim_id)}.",
                LogLevel.ERROR,
            )

    def _say(self, outcome: Outcome) -> None:
        """The last line of the log says how it ended."""
        if outcome.status == JobStatus.SUCCESS:
            self.log.write(f"{self.claim.type} succeeded")
        else:
            self.log.write(
                f"{self.claim.type} {outcome.status.lower()}: {outcome.error_message}", LogLevel.ERROR
            )

    def _report(self, outcome: Outcome, report: StatusReport) -> None:
        number = self.claim.job_number
        try:
            answer = self.client.report(self.claim.job_id, report, give_up=self.stop.gave_up)
        except StaleClaim:
            logger.warning("Job %d: the console has moved on; %s is not recorded.", number, outcome.status)
        except (Refused, ConsoleAway) as error:
            logger.error("Job %d: the report %s was not accepted: %s", number, outcome.status, error)
        else:
            self._heartbeat.is_over = True
            logger.info("Job %d: %s, now %s.", number, outcome.status, answer.status)

    def _watch(self) -> None:
        self.equipment.guard.watch(
            self.marker,
            interrupt_at=self.lease.guard_interrupt_at,
            kill_at=self.lease.kill_at,
            directories=self.workdir.directories,
            relay=self.equipment.relay.pid,
        )
        self.equipment.relay.renew(
            self.marker, patient_until=self.lease.interrupt_at, ends_at=self.lease.expires_at
        )

    def _secrets(self) -> Iterator[Any]:
        yield self.client.credential
        for name in self.claim.sensitive_variables:
            yield self.claim.variables.get(name)
        yield from secret_values(self.claim.environment, self.claim.sensitive_variables)
        if self.claim.state:
            yield self.claim.state.password
        if self.claim.source_token:
            yield self.claim.source_token
            yield git_login(self.claim.source_token)[1]


#: Said of the job and not of the attempt, in words that are meant for people.
_REFUSALS = ("plan_stale", "plan_spent", "spec_expired", "gate_closed")


def _ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    hint = "; is the machine out of memory?" if -code == signal.SIGKILL else ""
    return f"was ended by {signal.Signals(-code).name}{hint}"


def _is_full_disk(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _told(error: Exception, phase: str) -> str:
    """An unexpected error in one line for people; the runner's own log has the rest."""
    if _is_full_disk(error):
        return f"The runner's disk is full (during {phase}). Free some space, then try again."
    text = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return f"The runner failed during {phase}: {type(error).__name__}: {text}. Its own log says more."
