"""The child processes of `slipway up`: start them, restart crashed ones, stop them in reverse order."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from console.local.parent_death import bind_to_parent

#: Wait this long before a restart, doubling each time: 1, 2, 4, 8, 16, 30, 30 …
FIRST_BACKOFF_SECONDS = 1.0
LAST_BACKOFF_SECONDS = 30.0
# After a minute a process counts as healthy: its next failure starts over.
HEALTHY_SECONDS = 60.0

# Beyond this a log is set aside at start, replacing the one set aside before.
MAX_LOG_BYTES = 10 * 1024 * 1024

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A closing terminal sends a hang-up and, through make, a termination: one request, not two.
SAME_REQUEST_SECONDS = 0.5


class Signals:
    """Signals that the main loop waits for, so that they never interrupt a start or a stop."""

    def __init__(self) -> None:
        self.stop_requests = 0
        self._requested_at = float("-inf")
        # Ignored signals stay ignored: nohup, and background jobs of a script.
        self._stopping = {number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN}
        self._watched = {*self._stopping, signal.SIGCHLD}
        self._has_terminal = signal.SIGHUP in self._stopping and _stdin_is_terminal()

    def catch(self) -> None:
        """Block the signals until the process ends: a late Ctrl-C must not make a clean stop look failed."""
        signal.pthread_sigmask(signal.SIG_BLOCK, self._watched)

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, or earlier on a signal or the end of a child."""
        arrived = signal.sigtimedwait(self._watched, max(seconds, 0))
        is_stop = arrived is not None and arrived.si_signo in self._stopping
        if is_stop or self._terminal_is_gone():
            self._count_request()

    def _terminal_is_gone(self) -> bool:
        """Return true once the terminal is closed: make, as session leader, does not pass the hang-up on."""
        is_gone = self._has_terminal and not _stdin_is_terminal()
        self._has_terminal = self._has_terminal and not is_gone
        return is_gone

    def _count_request(self) -> None:
        now = time.monotonic()
        if now - self._requested_at > SAME_REQUEST_SECONDS:
            self.stop_requests += 1
            self._requested_at = now

    @property
    def hurry(self) -> bool:
        """Return true after a second Ctrl-C: stop without waiting."""
        return self.stop_requests > 1


def _stdin_is_terminal() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return False


@dataclass
class Service:
    """One child process. Each start calls `environment`, since a restart may need other values."""

    name: str
    command: Sequence[str]
    environment: Callable[[], Mapping[str, str]]
    log_file: Path
    stop_seconds: float
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    restart_at: float | None = None
    backoff_seconds: float = FIRST_BACKOFF_SECONDS

    def start(self) -> None:
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                bind_to_parent(self.command, death_signal=signal.SIGTERM),
                cwd=self.log_file.parent,  # Python looks for modules here: a place that only we write to.
                env=dict(self.environment()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches us alone, so that we can stop them in order.
            )
        self.started_at = time.monotonic()
        self.restart_at = None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def exit_text(self) -> str:
        code = self.process.returncode if self.process is not None else None
        if code is None:
            return "is running"
        return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"

    def signal(self, how: signal.Signals) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(how)


@dataclass
class Supervisor:
    """Keep services running until a signal to stop, then stop them in reverse order."""

    signals: Signals
    say: Callable[[str], None]
    services: list[Service] = field(default_factory=list)

    def start(self, service: Service) -> None:
        self.services.append(service)
        service.start()

    def run(self, *, also_watch: Callable[[], None]) -> None:
        """Run until a signal to stop. Each turn calls `also_watch`, for processes that are not services."""
        while not self.signals.stop_requests:
            also_watch()
            for service in self.services:
                self._attend(service)
            self.signals.wait(self._seconds_to_next_restart())

    def _attend(self, service: Service) -> None:
        if service.is_running:
            return
        now = time.monotonic()
        if service.restart_at is None:
            self._schedule_restart(service, now)
        elif now >= service.restart_at:
            service.start()

    def _schedule_restart(self, service: Service, now: float) -> None:
        if now - service.started_at > HEALTHY_SECONDS:
            service.backoff_seconds = FIRST_BACKOFF_SECONDS
        # Once per series of failures: the log has the rest.
        if service.backoff_seconds == FIRST_BACKOFF_SECONDS:
            self.say(
                f"The {service.name} ended ({service.exit_text}) and is being restarted; "
                f"see {service.log_file}"
            )
        service.restart_at = now + service.backoff_seconds
        service.backoff_seconds = min(service.backoff_seconds * 2, LAST_BACKOFF_SECONDS)

    def _seconds_to_next_restart(self) -> float:
        waiting = [service.restart_at for service in self.services if service.restart_at is not None]
        return min([1.0, *(moment - time.monotonic() for moment in waiting)])

    def stop(self) -> None:
        for service in reversed(self.services):
            self._stop_one(service)

    def _stop_one(self, service: Service) -> None:
        """Ask, wait, kill."""
        deadline = time.monotonic() + service.stop_seconds
        service.signal(signal.SIGTERM)
        while service.is_running and time.monotonic() < deadline and not self.signals.hurry:
            self.signals.wait(deadline - time.monotonic())
        if service.is_running and service.process is not None:
            service.signal(signal.SIGKILL)
            service.process.wait()


def set_aside_large_logs(folder: Path) -> None:
    for log in folder.glob("*.log"):
        if log.stat().st_size > MAX_LOG_BYTES:
            log.replace(log.with_name(f"{log.name}.1"))
