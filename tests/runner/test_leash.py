"""Terraform is interrupted once and ends before its lease, whichever processes around it are killed."""

from __future__ import annotations

import dataclasses
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runner import clock
from runner.protocol import JobType
from runner.stopping import Lease, Stop
from runner.terraform import process
from tests.process_table import command_line, has_ended
from tests.runner.configurations import assert_ended_in_good_order, begun, deploy_when_planned, sleeping
from tests.runner.conftest import ROOT, STUBBORN_SECONDS, RunnerProcess, StartRunner
from tests.runner.fake_console import FakeConsole
from tests.waiting import wait_until

#: Notes each SIGINT, and goes on.
COUNTING = """
import pathlib, signal, sys
note = pathlib.Path(sys.argv[1])
signal.signal(signal.SIGINT, lambda *_: note.open("a").write("interrupted\\n"))
note.touch()
while True:
    signal.pause()
"""


def an_hour() -> Stop:
    lease = Lease(sent_at=clock.now(), lease_seconds=3600)
    return Stop(lease=lease, timeout_seconds=3600, grace_seconds=30)


def run(command: list[str], leash: process.Leash, folder: Path, *, stop: Stop | None = None) -> int:
    return process.capture(
        command, cwd=folder, env={}, stop=stop or an_hour(), leash=leash,
        stdout=folder / "stdout", stderr=folder / "stderr",
    )  # fmt: skip


def test_a_runner_and_a_watchdog_that_are_killed_together_leave_nothing_behind(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    begun(console)
    runner.kill_with(*runner.watchdogs())
    runner.wait_until_nothing_runs(seconds=40)
    wait_until(lambda: not runner.workdirs(), what="the removal of the working directory")
    assert_ended_in_good_order(console, runner)


def test_terraform_that_ignores_it_is_killed_as_the_lease_ends(
    console: FakeConsole, start_runner: StartRunner, stubborn_terraform: str
) -> None:
    runner = start_runner(SLIPWAY_TERRAFORM=stubborn_terraform)
    job = deploy_when_planned(console, sleeping(), lease_seconds=6)
    job.wait_for("begun")
    runner.kill_with(*runner.watchdogs())
    runner.wait_until_nothing_runs(seconds=STUBBORN_SECONDS / 2)


def test_a_runner_and_a_watchdog_that_are_stopped_past_the_lease_do_not_keep_terraform_alive(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    begun(console, lease_seconds=6)
    stopped = [runner.process.pid, *runner.watchdogs()]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    runner.wait_until_nothing_runs(seconds=40)
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    following = console.enqueue(JobType.PLAN, {"main.tf": ""}, spec="other")
    assert following.wait_for_end().status == "SUCCESS"


def test_when_all_are_killed_the_kernel_interrupts_terraform(
    console: FakeConsole, runner: RunnerProcess, start_runner: StartRunner
) -> None:
    begun(console)
    runner.kill_with(*runner.watchdogs(), *runner.leashes())
    wait_until(lambda: "terraform" not in runner.programs(), seconds=40, what="the end of Terraform")
    assert console.resources() == {"before", "slow"}
    assert not console.state_locks
    # The kernel has interrupted Terraform alone: what that had started ends with the next start.
    start_runner(SLIPWAY_RUNNER_STOP_GRACE="0")
    assert console.enqueue(JobType.PLAN, sleeping()).wait_for_end().status == "SUCCESS"
    assert_ended_in_good_order(console, runner)


def test_what_nobody_could_end_is_ended_by_the_next_start(
    console: FakeConsole, start_runner: StartRunner, stubborn_terraform: str
) -> None:
    runner = start_runner(SLIPWAY_TERRAFORM=stubborn_terraform)
    deploy_when_planned(console, sleeping()).wait_for("begun")
    runner.kill_with(*runner.watchdogs(), *runner.leashes())
    assert runner.living()
    following = start_runner(SLIPWAY_RUNNER_STOP_GRACE="1")
    job = console.enqueue(JobType.PLAN, {"main.tf": ""}, spec="other")
    assert job.wait_for_end().status == "SUCCESS"
    assert "still runs" in following.log
    assert not runner.living()
    assert not runner.workdirs()


def test_a_killed_leash_costs_the_job_and_not_its_state(console: FakeConsole, runner: RunnerProcess) -> None:
    job = begun(console)
    (leash,) = runner.leashes()
    os.kill(leash, signal.SIGKILL)
    final = job.wait_for_end()
    assert (final.status, final.error_code) == ("FAILED", "terraform_failed")
    assert final.log == job.receipt
    assert_ended_in_good_order(console, runner)
    following = console.enqueue(JobType.PLAN, {"main.tf": ""}, spec="other")
    assert following.wait_for_end().status == "SUCCESS"


#: A runner in small: one command, and a lease of three seconds from the moment it is told of.
SMALL = """
import pathlib, sys, threading, uuid
from runner import clock
from runner.terraform import process
from runner.terraform.watchdog import MARKER_VARIABLE, Watchdog
from runner.stopping import Lease, Stop

def watch(kill_at):
    watchdog.watch(marker, interrupt_at=clock.now() + 600, kill_at=kill_at, directories=[], relay=None)

def renew():
    sys.stdin.readline()
    watch(clock.now() + 3)
    print("renewed", flush=True)

watchdog, marker = Watchdog(), uuid.uuid4().hex
watchdog.start()
watch(clock.now() + 600)
threading.Thread(target=renew).start()
folder = pathlib.Path(sys.argv[1])
process.capture(
    [sys.executable, "-c", sys.argv[2], str(folder / "note")], cwd=folder, env={MARKER_VARIABLE: marker},
    stop=Stop(lease=Lease(sent_at=clock.now(), lease_seconds=600), timeout_seconds=600, grace_seconds=600),
    stdout=folder / "stdout", stderr=folder / "stderr", leash=process.Leash(
        descriptors=watchdog.leash(marker), limits={}, on_interrupt=lambda: None, is_alive=lambda pid: False
    ),
)
"""


@pytest.mark.parametrize("is_interrupted", [True, False])
def test_a_watchdog_that_the_leash_starts_interrupts_once(tmp_path: Path, is_interrupted: bool) -> None:
    """This holds also if the runner had interrupted Terraform before it was killed."""
    note = tmp_path / "note"
    command = [sys.executable, "-c", SMALL, str(tmp_path), COUNTING]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as small:
        runner = RunnerProcess(small, tmp_path, tmp_path / "stderr")
        wait_until(note.exists, what="the program")
        (leash,) = runner.leashes()
        if is_interrupted:
            os.killpg(leash, signal.SIGINT)
            wait_until(note.read_text, what="the interrupt")
        assert small.stdin and small.stdout
        small.stdin.write(b"renew\n")
        small.stdin.flush()
        assert small.stdout.readline()
        runner.kill_with(*runner.watchdogs())
    wait_until(lambda: has_ended(leash), what="the kill")
    assert note.read_text().splitlines() == ["interrupted"]


def test_an_interrupt_is_not_lost_however_early_it_comes(leash: process.Leash, tmp_path: Path) -> None:
    for _ in range(10):
        stop = an_hour()
        stop.cancel()
        assert run(["/bin/sleep", "600"], leash, tmp_path, stop=stop) == -signal.SIGINT
        assert not (tmp_path / "stderr").read_text()


@pytest.mark.parametrize("code", [0, 3, -signal.SIGKILL])
def test_a_program_ends_as_it_ends_without_a_leash(leash: process.Leash, tmp_path: Path, code: int) -> None:
    end = f"sys.exit({code})" if code >= 0 else f"os.kill(os.getpid(), {-code})"
    assert run([sys.executable, "-c", f"import os, sys; {end}"], leash, tmp_path) == code


def test_what_cannot_be_started_says_why(leash: process.Leash, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run([str(tmp_path / "nothing")], leash, tmp_path)
    (tmp_path / "data").touch(mode=0o600)
    with pytest.raises(PermissionError):
        run([str(tmp_path / "data")], leash, tmp_path)


def test_a_program_gets_its_limits_and_no_descriptor_of_the_leash(
    leash: process.Leash, tmp_path: Path
) -> None:
    limited = dataclasses.replace(leash, limits={resource.RLIMIT_NOFILE: 77})
    assert run(["/bin/sh", "-c", "ulimit -n; ls /proc/self/fd | wc -l"], limited, tmp_path) == 0
    # The three that each program has, and the one with which `ls` reads.
    assert (tmp_path / "stdout").read_text().split() == ["77", "4"]


def test_a_leash_is_no_place_for_secrets(console: FakeConsole, runner: RunnerProcess) -> None:
    begun(console)
    (leash,) = runner.leashes()
    assert "state-password" not in command_line(leash)
