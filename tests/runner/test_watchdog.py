"""The watchdog interrupts what a runner left behind once: a second SIGINT makes Terraform drop its state."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner import clock
from runner.terraform.watchdog import MARKER_VARIABLE, Watchdog
from tests.process_table import has_ended
from tests.waiting import wait_until

MARKER = "the-attempt"
#: Records every SIGINT, and keeps starting short-lived processes of its group, as provisioners do.
COUNTING = """
import pathlib, signal, subprocess, sys
note = pathlib.Path(sys.argv[1])
signal.signal(signal.SIGINT, lambda *_: note.open("a").write("interrupted\\n"))
note.touch()
while True:
    subprocess.run(["sleep", "0.05"], preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
"""


@pytest.fixture
def working(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with the attempt's marker."""
    process = subprocess.Popen(
        [sys.executable, "-c", COUNTING, str(tmp_path / "note")],
        env={**os.environ, MARKER_VARIABLE: MARKER},
        start_new_session=True,
    )
    wait_until((tmp_path / "note").exists, what="the process")
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def interrupts(tmp_path: Path) -> Callable[[], int]:
    return lambda: len((tmp_path / "note").read_text().splitlines())


def watch(watchdog: Watchdog, *, interrupt_in: float, kill_in: float) -> None:
    moment = clock.now()
    watchdog.watch(
        MARKER, interrupt_at=moment + interrupt_in, kill_at=moment + kill_in, directories=[], relay=None
    )


def has_ended_of(process: subprocess.Popen[bytes]) -> Callable[[], bool]:
    return lambda: process.poll() is not None


def test_a_group_is_interrupted_once_and_killed_in_the_end(
    watchdog: Watchdog, working: subprocess.Popen[bytes], interrupts: Callable[[], int]
) -> None:
    watch(watchdog, interrupt_in=0, kill_in=60)
    wait_until(interrupts, what="the interrupt")
    watch(watchdog, interrupt_in=0, kill_in=1)
    wait_until(has_ended_of(working), what="the kill")
    assert interrupts() == 1


def test_what_the_runner_has_interrupted_is_not_interrupted_again(
    watchdog: Watchdog, working: subprocess.Popen[bytes], interrupts: Callable[[], int]
) -> None:
    """The lease runs out while Terraform, interrupted by the runner, still finishes a resource."""
    watch(watchdog, interrupt_in=1.5, kill_in=2.5)
    watchdog.record_interrupt(MARKER)
    wait_until(has_ended_of(working), what="the kill")
    assert interrupts() == 0


def test_a_renewal_does_not_make_it_forget(
    watchdog: Watchdog, working: subprocess.Popen[bytes], interrupts: Callable[[], int]
) -> None:
    """A cancelled attempt is interrupted and goes on renewing its lease; then its runner is killed."""
    watch(watchdog, interrupt_in=60, kill_in=120)
    watchdog.record_interrupt(MARKER)
    watch(watchdog, interrupt_in=0.2, kill_in=1.2)
    wait_until(has_ended_of(working), what="the kill")
    assert interrupts() == 0


def test_a_watchdog_that_follows_a_killed_one_knows_everything_from_its_start(
    watchdog: Watchdog, working: subprocess.Popen[bytes], interrupts: Callable[[], int]
) -> None:
    """Its runner may die before it sends more: an interrupted process is killed, not interrupted again."""
    watch(watchdog, interrupt_in=0, kill_in=60)
    wait_until(interrupts, what="the interrupt")
    watchdog.record_interrupt(MARKER)
    kill(watchdog)
    watch(watchdog, interrupt_in=0, kill_in=1)
    wait_until(has_ended_of(working), what="the kill")
    assert interrupts() == 1


def kill(watchdog: Watchdog) -> None:
    assert watchdog.pid is not None
    os.kill(watchdog.pid, signal.SIGKILL)
    wait_until(lambda: has_ended(watchdog.pid or 0), what="the watchdog's end")
