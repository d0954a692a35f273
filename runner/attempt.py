"""One attempt at one job, as its steps see it: its state, and how to run commands."""

from __future__ import annotations

import dataclasses
import signal
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from typing import Any

from runner import clock
from runner.client import ConsoleClient
from runner.config import Settings
from runner.log import LogPipe
from runner.outcome import StepFailed
from runner.protocol import Claim, LogLevel, RunnerFacts, StateAccess, git_login
from runner.redact import Redactor
from runner.stopping import Lease, Stop
from runner.terraform import process
from runner.terraform.binary import TerraformBinary
from runner.terraform.environment import secret_values
from runner.terraform.output import Diagnostic, Event, OutputReader
from runner.terraform.relay import Relay
from runner.terraform.watchdog import Watchdog, processes_of
from runner.terraform.workdir import DataDirectory

#: Adds events around each event of a command: see `last_step`.
Around = Callable[[Event], Iterable[Event]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """The parts of a runner that all its attempts share."""

    settings: Settings
    name: str
    facts: RunnerFacts
    client: ConsoleClient
    terraform: TerraformBinary
    data: DataDirectory
    watchdog: Watchdog
    relay: Relay
    environ: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The result of one Terraform command."""

    exit_code: int
    errors: list[Diagnostic]
    summary: dict[str, Any]

    def failure(self, phase: str) -> StepFailed:
        if not self.errors:
            return StepFailed("terraform_failed", f"Terraform {phase} {describe_exit(self.exit_code)}.")
        fatal = any(error.is_configuration_error for error in self.errors)
        # The first with a place; Terraform may open with a general remark.
        first = next((error for error in self.errors if error.place), self.errors[0])
        return StepFailed("terraform_failed", first.sentence, fatal=fatal)


class Attempt:
    """The state of one attempt that its steps read and change; `execution` runs them."""

    def __init__(self, claim: Claim, equipment: Equipment) -> None:
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
        self.state_lineage = ""
        self.state_serial = 0
        self.result: dict[str, Any] = {}
        #: The only part of a report that is not masked; the console encrypts it.
        self.sensitive_outputs: dict[str, Any] = {}
        self.has_applied = False
        self.phase_name = "the start"
        #: Ends what a step has started, such as the renewal of credentials.
        self.cleanup = ExitStack()
        self.log = LogPipe(
            send=partial(
                self.client.append_log, claim.job_id, claim.claim_id, give_up=self.stop.has_given_up
            ),
            first_seq=claim.next_log_seq,
            redactor=self.redactor,
            spool_dir=equipment.data.work,
        )

    def open_state(self) -> StateAccess | None:
        """Have the relay serve the state, and return the addresses and password for Terraform."""
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
        """Run a command whose output goes to the log; `around` adds lines before and after its events."""
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
        """Run a command that prints a document, and return that; its errors go to the log."""
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
        raise StepFailed("terraform_failed", f"Terraform {' '.join(arguments[:2])} {describe_exit(code)}.")

    def leash(self) -> process.Leash:
        """Return the leash for the next command."""
        watchdog = self.equipment.watchdog
        return process.Leash(
            descriptors=watchdog.leash(self.marker),
            limits=self.equipment.settings.limits,
            on_interrupt=lambda: watchdog.record_interrupt(self.marker),
            is_alive=lambda pid: pid in processes_of(self.marker),
        )

    @contextmanager
    def phase(self, name: str, title: str) -> Iterator[None]:
        """Mark a phase of the job in its log."""
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

    def watch(self) -> None:
        """Tell the watchdog and the relay until when the lease lasts."""
        self.equipment.watchdog.watch(
            self.marker,
            interrupt_at=self.lease.watchdog_interrupt_at,
            kill_at=self.lease.kill_at,
            directories=self.workdir.directories,
            relay=self.equipment.relay.pid,
        )
        self.equipment.relay.renew(
            self.marker, patient_until=self.lease.interrupt_at, ends_at=self.lease.expires_at
        )

    def forget(self) -> None:
        """Tell the watchdog and the relay that nothing of this attempt is left."""
        self.equipment.watchdog.forget(self.marker)
        self.equipment.relay.forget(self.marker)

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


def describe_exit(code: int) -> str:
    """Say how a command ended; a negative code is a signal's number."""
    if code >= 0:
        return f"ended with exit code {code}"
    hint = "; is the machine out of memory?" if -code == signal.SIGKILL else ""
    return f"was ended by {signal.Signals(-code).name}{hint}"
