"""The watchdog: a small second process that ends Terraform when the runner no longer can.

It waits on a pipe from the runner. When the pipe closes, the runner is dead: the watchdog interrupts what
the runner had started, so that Terraform saves its state and releases its lock, and kills what is left
before the lease ends. When the runner is alive but renews nothing (stopped, swapped out), the watchdog does
the same as the lease runs out. When the watchdog is killed, the runner starts another; when both are, the
leash of a running command does (see `leash`).

What belongs to an attempt is recognised by a random marker in its environment, which children inherit.
This file is run by its path, with the standard library only, and imports nothing of the runner.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

MARKER_VARIABLE = "SLIPWAY_ATTEMPT"

#: The interval of polls while the watchdog is ending something.
_POLL_SECONDS = 0.1
#: A process that is being started shows its new environment only after exec: poll some times more.
_EMPTY_POLLS = 5


class Watchdog:
    """The runner's side: starts the watchdog process and tells it what to watch, until when."""

    def __init__(self, *, inherited: Iterable[int] = ()) -> None:
        self._inherited = tuple(inherited)
        # Nothing is ever written to it: its readers see its end when the runner and the watchdog are gone.
        self._watched, self._watching = os.pipe()
        self._attempts: dict[str, dict[str, Any]] = {}
        self._files: dict[str, int] = {}
        self._interrupted: set[str] = set()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        with self._lock:
            self._start()

    def watch(
        self,
        marker: str,
        *,
        interrupt_at: float,
        kill_at: float,
        directories: Iterable[Path],
        relay: int | None,
    ) -> None:
        """Watch an attempt, or move its times after a renewal of the lease."""
        attempt = {
            "interrupt_at": interrupt_at,
            "kill_at": kill_at,
            "directories": [str(directory) for directory in directories],
            "relay": relay,
        }
        with self._lock:
            self._attempts[marker] = attempt
            self._write_attempt(marker)
            self._send_or_restart({"marker": marker, **attempt})

    def record_interrupt(self, marker: str) -> None:
        """Record that the runner interrupts the attempt now: the watchdog must not do it a second time."""
        with self._lock:
            self._interrupted.add(marker)
            self._send_or_restart({"marker": marker, "is_interrupted": True})

    def leash(self, marker: str) -> list[int]:
        """Return descriptors for a leash: the pipe to watch, the attempt, and those for a watchdog."""
        with self._lock:
            return [self._watched, self._files[marker], *self._inherited]

    def forget(self, marker: str) -> None:
        with self._lock:
            if self._attempts.pop(marker, None):
                os.close(self._files.pop(marker))
            self._interrupted.discard(marker)
            self._send_or_restart({"marker": marker, "forget": True})

    def close(self) -> None:
        with self._lock:
            self._end()
            os.close(self._watching)
            os.close(self._watched)

    def _start(self) -> None:
        """Fill the pipe before the process starts, since the runner may die at any moment.

        64 slots make 25 KB, and a pipe takes 64 KB that nobody reads yet.
        """
        reading, self._pipe = os.pipe()
        for message in self._messages():
            self._send(message)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            # Its own session: a Ctrl-C at the terminal, or a kill of the runner's group, must not reach it.
            start_new_session=True,
            pass_fds=[*self._inherited, self._watching],
        )
        os.close(reading)

    def _write_attempt(self, marker: str) -> None:
        """Write the messages to memory, for a leash that has to start a watchdog without the runner."""
        if marker not in self._files:
            self._files[marker] = os.memfd_create("attempt")
        attempt = {"marker": marker, **self._attempts[marker]}
        interrupted = {"marker": marker, "is_interrupted": True}
        text = f"{attempt['kill_at']}\n{json.dumps(attempt)}\n{json.dumps(interrupted)}\n"
        os.pwrite(self._files[marker], text.encode(), 0)

    def _messages(self) -> Iterator[dict[str, Any]]:
        for marker, attempt in self._attempts.items():
            yield {"marker": marker, **attempt}
        for marker in self._interrupted:
            yield {"marker": marker, "is_interrupted": True}

    def _end(self) -> None:
        process, self._process = self._process, None
        if process:
            os.close(self._pipe)
            process.wait()

    def _send_or_restart(self, message: dict[str, Any]) -> None:
        if self._process is None:
            return
        try:
            self._send(message)
        except OSError:  # The watchdog was killed: a new one gets everything again.
            self._end()
            self._start()

    def _send(self, message: dict[str, Any]) -> None:
        os.write(self._pipe, json.dumps(message).encode() + b"\n")


def processes_of(marker: str) -> set[int]:
    """Return the running processes whose environment has the marker, or one that begins like it."""
    variable = f"{MARKER_VARIABLE}={marker}".encode()
    return {pid for pid in _pids() if any(part.startswith(variable) for part in _environment(pid))}


def groups_of(marker: str) -> set[int]:
    """Return the process groups of such processes; never the caller's own."""
    groups = {group for pid in processes_of(marker) if (group := _group(pid)) is not None}
    return groups - {os.getpgrp()}


def signal_groups(groups: Iterable[int], number: signal.Signals) -> None:
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # It ended meanwhile, or is another user's.
        return []


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclasses.dataclass(slots=True)
class _WatchedAttempt:
    """One attempt, on the watchdog's side."""

    marker: str
    interrupt_at: float
    kill_at: float
    directories: list[str]
    relay: int | None
    interrupted: set[int] = dataclasses.field(default_factory=set)
    empty_polls: int = 0

    def renew(self, facts: dict[str, Any]) -> None:
        self.interrupt_at, self.kill_at = facts["interrupt_at"], facts["kill_at"]
        self.directories, self.relay = facts["directories"], facts["relay"]

    def escalate(self) -> None:
        """Interrupt each group once (a second SIGINT makes Terraform drop its state), then kill."""
        groups = groups_of(self.marker)
        self.empty_polls = 0 if groups else self.empty_polls + 1
        if _now() >= self.kill_at:
            signal_groups(groups, signal.SIGKILL)
        else:
            signal_groups(groups - self.interrupted, signal.SIGINT)
        self.interrupted |= groups

    def clear_up(self) -> None:
        """Remove the working directory; a state that Terraform could not save stays for the next start."""
        for directory in self.directories:
            if not list(Path(directory).glob("**/errored.tfstate")):
                shutil.rmtree(directory, ignore_errors=True)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    attempts = _follow_runner()
    _end_orphans(attempts)


def _follow_runner() -> list[_WatchedAttempt]:
    """Follow the runner's messages until the pipe closes; returns the attempts that it left behind."""
    attempts: dict[str, _WatchedAttempt] = {}
    rest = b""
    while True:
        if select.select([0], [], [], _pause(attempts.values()))[0]:
            received = os.read(0, 65536)
            if not received:
                return list(attempts.values())
            *lines, rest = (rest + received).split(b"\n")
            for line in lines:
                _apply_message(json.loads(line), attempts)
        for attempt in attempts.values():
            if _now() >= attempt.interrupt_at:
                attempt.escalate()


def _apply_message(message: dict[str, Any], attempts: dict[str, _WatchedAttempt]) -> None:
    marker = message.pop("marker")
    if message.get("forget"):
        attempts.pop(marker, None)
    elif message.get("is_interrupted"):
        if attempt := attempts.get(marker):
            attempt.interrupted |= groups_of(marker)
    elif marker in attempts:
        attempts[marker].renew(message)
    else:
        attempts[marker] = _WatchedAttempt(marker=marker, **message)


def _pause(attempts: Iterable[_WatchedAttempt]) -> float | None:
    waits = [max(_POLL_SECONDS, attempt.interrupt_at - _now()) for attempt in attempts]
    return min(waits, default=None)


def _end_orphans(attempts: list[_WatchedAttempt]) -> None:
    relays = {attempt.relay for attempt in attempts if attempt.relay is not None}
    while attempts:
        for attempt in list(attempts):
            attempt.escalate()
            if attempt.empty_polls >= _EMPTY_POLLS:
                attempt.clear_up()
                attempts.remove(attempt)
        time.sleep(_POLL_SECONDS)
    # Not earlier: Terraform saves its state through it.
    for relay in relays:
        with contextlib.suppress(ProcessLookupError):
            os.kill(relay, signal.SIGKILL)


if __name__ == "__main__":
    main()
