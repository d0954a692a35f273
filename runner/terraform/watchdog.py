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

#: How often the watchdog looks while it is ending something.
_LOOK_SECONDS = 0.1
#: A process that is being started shows its new environment only after exec: look some times more.
_EMPTY_LOOKS = 5


class Watchdog:
    """The runner's side: starts the watchdog process and tells it what to watch, until when."""

    def __init__(self, *, inherited: Iterable[int] = ()) -> None:
        self._inherited = tuple(inherited)
        # Nothing is ever written to it: its readers see its end when the runner and the watchdog are gone.
        self._watched, self._watching = os.pipe()
        self._wards: dict[str, dict[str, Any]] = {}
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
        """Watch over an attempt, or move its times after a renewal of the lease."""
        ward = {
            "interrupt_at": interrupt_at,
            "kill_at": kill_at,
            "directories": [str(directory) for directory in directories],
            "relay": relay,
        }
        with self._lock:
            self._wards[marker] = ward
            self._write_down(marker)
            self._tell({"marker": marker, **ward})

    def is_interrupted(self, marker: str) -> None:
        """The runner is about to interrupt what runs now: the watchdog must not do it a second time."""
        with self._lock:
            self._interrupted.add(marker)
            self._tell({"marker": marker, "is_interrupted": True})

    def leash(self, marker: str) -> list[int]:
        """What a leash is given, by descriptor: the pipe to watch, the ward, and what a watchdog inherits."""
        with self._lock:
            return [self._watched, self._files[marker], *self._inherited]

    def forget(self, marker: str) -> None:
        with self._lock:
            if self._wards.pop(marker, None):
                os.close(self._files.pop(marker))
            self._interrupted.discard(marker)
            self._tell({"marker": marker, "forget": True})

    def close(self) -> None:
        with self._lock:
            self._end()
            os.close(self._watching)
            os.close(self._watched)

    def _start(self) -> None:
        """What there is to know is in the pipe before the watchdog is there: the runner may die any moment.

        64 slots make 25 KB, and a pipe takes 64 KB that nobody reads yet.
        """
        reading, self._pipe = os.pipe()
        for message in self._known():
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

    def _write_down(self, marker: str) -> None:
        """In memory, for a leash that has to start a watchdog when there is nobody left to ask."""
        if marker not in self._files:
            self._files[marker] = os.memfd_create("ward")
        ward = {"marker": marker, **self._wards[marker]}
        interrupted = {"marker": marker, "is_interrupted": True}
        text = f"{ward['kill_at']}\n{json.dumps(ward)}\n{json.dumps(interrupted)}\n"
        os.pwrite(self._files[marker], text.encode(), 0)

    def _known(self) -> Iterator[dict[str, Any]]:
        for marker, ward in self._wards.items():
            yield {"marker": marker, **ward}
        for marker in self._interrupted:
            yield {"marker": marker, "is_interrupted": True}

    def _end(self) -> None:
        process, self._process = self._process, None
        if process:
            os.close(self._pipe)
            process.wait()

    def _tell(self, message: dict[str, Any]) -> None:
        if self._process is None:
            return
        try:
            self._send(message)
        except OSError:  # Somebody killed the watchdog: a new one learns everything again.
            self._end()
            self._start()

    def _send(self, message: dict[str, Any]) -> None:
        os.write(self._pipe, json.dumps(message).encode() + b"\n")


def processes_of(marker: str) -> set[int]:
    """The living processes whose environment has the marker, or one that begins like it."""
    wanted = f"{MARKER_VARIABLE}={marker}".encode()
    return {pid for pid in _pids() if any(part.startswith(wanted) for part in _environment(pid))}


def groups_of(marker: str) -> set[int]:
    """The process groups in which such processes are; never the caller's own."""
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
class _Ward:
    """One attempt under watch."""

    marker: str
    interrupt_at: float
    kill_at: float
    directories: list[str]
    relay: int | None
    interrupted: set[int] = dataclasses.field(default_factory=set)
    empty_looks: int = 0

    def renew(self, facts: dict[str, Any]) -> None:
        self.interrupt_at, self.kill_at = facts["interrupt_at"], facts["kill_at"]
        self.directories, self.relay = facts["directories"], facts["relay"]

    def press(self) -> None:
        """Interrupt each group once (a second SIGINT makes Terraform drop its state), then kill."""
        groups = groups_of(self.marker)
        self.empty_looks = 0 if groups else self.empty_looks + 1
        if _now() >= self.kill_at:
            signal_groups(groups, signal.SIGKILL)
        else:
            signal_groups(groups - self.interrupted, signal.SIGINT)
        self.interrupted |= groups

    def clear_up(self) -> None:
        """Remove the work directory; a state that Terraform could not save stays for the next start."""
        for directory in self.directories:
            if not list(Path(directory).glob("**/errored.tfstate")):
                shutil.rmtree(directory, ignore_errors=True)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    wards = _serve_the_living()
    _end_the_estate(wards)


def _serve_the_living() -> list[_Ward]:
    """Follow the runner's messages until the pipe closes; returns what the runner left behind."""
    wards: dict[str, _Ward] = {}
    rest = b""
    while True:
        if select.select([0], [], [], _pause(wards.values()))[0]:
            received = os.read(0, 65536)
            if not received:
                return list(wards.values())
            *lines, rest = (rest + received).split(b"\n")
            for line in lines:
                _follow(json.loads(line), wards)
        for ward in wards.values():
            if _now() >= ward.interrupt_at:
                ward.press()


def _follow(message: dict[str, Any], wards: dict[str, _Ward]) -> None:
    marker = message.pop("marker")
    if message.get("forget"):
        wards.pop(marker, None)
    elif message.get("is_interrupted"):
        if ward := wards.get(marker):
            ward.interrupted |= groups_of(marker)
    elif marker in wards:
        wards[marker].renew(message)
    else:
        wards[marker] = _Ward(marker=marker, **message)


def _pause(wards: Iterable[_Ward]) -> float | None:
    waits = [max(_LOOK_SECONDS, ward.interrupt_at - _now()) for ward in wards]
    return min(waits, default=None)


def _end_the_estate(wards: list[_Ward]) -> None:
    relays = {ward.relay for ward in wards if ward.relay is not None}
    while wards:
        for ward in list(wards):
            ward.press()
            if ward.empty_looks >= _EMPTY_LOOKS:
                ward.clear_up()
                wards.remove(ward)
        time.sleep(_LOOK_SECONDS)
    # Not earlier: Terraform saves its state through it.
    for relay in relays:
        with contextlib.suppress(ProcessLookupError):
            os.kill(relay, signal.SIGKILL)


if __name__ == "__main__":
    main()
