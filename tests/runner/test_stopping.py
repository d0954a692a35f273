"""Terraform ends in good order and in time for every reason to stop, and the report names it."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

from runner import clock
from runner.protocol import JobType
from runner.stopping import RUNNER_STOP_SECONDS, Lease, Stop
from runner.terraform import process
from runner.terraform.binary import find_terraform
from tests.process_table import has_ended
from tests.runner.configurations import assert_ended_in_good_order, begun, deploy_when_planned, sleeping
from tests.runner.conftest import STUBBORN_SECONDS, RunnerProcess, StartRunner
from tests.runner.fake_console import FakeConsole, FakeJob
from tests.waiting import wait_until


def test_a_cancel_reaches_a_sleeping_terraform_within_seconds(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = begun(console)
    job.cancel = "person"
    final = job.wait_for_end(seconds=40)
    assert (final.status, final.error_code) == ("CANCELLED", "cancelled")
    assert final.error_message == "Cancelled during apply."
    assert final.log == job.receipt
    assert_ended_in_good_order(console, runner)


def test_a_timeout_that_the_console_announces_is_a_cancel_for_that_reason(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = begun(console)
    job.cancel = "timeout"
    final = job.wait_for_end()
    assert (final.status, final.error_code) == ("CANCELLED", "timeout_exceeded")


def test_the_runner_itself_keeps_the_time_limit(console: FakeConsole, runner: RunnerProcess) -> None:
    job = deploy_when_planned(console, sleeping(), timeout_seconds=2)
    final = job.wait_for_end()
    assert (final.status, final.error_code) == ("CANCELLED", "timeout_exceeded")
    assert "limit of 2 s" in str(final.error_message)
    assert not runner.terraform_processes()
    assert not console.state_locks


def test_a_cancel_that_terraform_ignores_ends_with_a_kill(
    console: FakeConsole, start_runner: StartRunner, stubborn_terraform: str
) -> None:
    runner = start_runner(SLIPWAY_TERRAFORM=stubborn_terraform, SLIPWAY_RUNNER_STOP_GRACE="1")
    job = deploy_when_planned(console, sleeping())
    job.wait_for("begun")
    job.cancel = "person"
    assert job.wait_for_end(seconds=STUBBORN_SECONDS / 2).status == "CANCELLED"
    assert not runner.terraform_processes()


#: Prints a line as soon as the last one was read, so that whoever reads always finds one more.
TALKATIVE = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
folder = pathlib.Path(sys.argv[1])
for number in range(1, 201):
    print(number, os.getpid(), flush=True)
    (folder / f"printed-{number}").touch()
    while not (folder / f"read-{number}").exists():
        time.sleep(0.001)
"""


def test_a_command_that_never_stops_talking_can_be_stopped(tmp_path: Path, leash: process.Leash) -> None:
    lease = Lease(sent_at=clock.now(), lease_seconds=600)
    stop = Stop(lease=lease, timeout_seconds=600, grace_seconds=600)
    read: list[str] = []

    def on_lines(lines: list[str]) -> None:
        read.extend(lines)
        number, talker = map(int, read[-1].split())
        if number >= 3:
            stop.cancel()
        (tmp_path / f"read-{number}").touch()
        following = tmp_path / f"printed-{number + 1}"
        wait_until(lambda: following.exists() or has_ended(talker), what="one more line")

    code = process.stream(
        [sys.executable, "-c", TALKATIVE, str(tmp_path)],
        cwd=tmp_path, env={}, stop=stop, scratch=tmp_path, on_lines=on_lines, leash=leash,
    )  # fmt: skip
    assert code == -signal.SIGINT
    assert len(read) < 100


def test_a_stale_claim_stops_terraform_at_once_and_the_runner_goes_on(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = begun(console)
    job.stale = True
    wait_until(lambda: not runner.terraform_processes(), seconds=40, what="the end of Terraform")
    following = console.enqueue(JobType.PLAN, {"main.tf": ""}, spec="other")
    assert following.wait_for_end().status == "SUCCESS"
    assert job.final is None
    assert "no longer ours" in runner.log


def test_sigterm_in_the_middle_of_an_apply_saves_reports_and_exits(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = begun(console)
    runner.signal(signal.SIGTERM)
    assert runner.wait(seconds=15) == 0
    assert job.final is not None
    assert (job.final.status, job.final.error_code) == ("FAILED", "runner_stopped")
    assert job.final.log == job.receipt
    assert_ended_in_good_order(console, runner)
    assert not runner.workdirs()
    wait_until(lambda: console.goodbyes, what="the goodbye")
    assert console.requests[-1] == "POST /api/runners/goodbye", "the last word, after the report"


def test_a_git_host_that_says_nothing_holds_up_neither_a_cancel_nor_sigterm(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/infrastructure.git"
        source = {"kind": "git", "url": url, "commit": "1" * 40}
        cancelled = console.enqueue(JobType.PLAN, snapshot={"source": source})
        cancelled.wait_for("Fetching http")
        cancelled.cancel = "person"
        assert cancelled.wait_for_end(seconds=30).status == "CANCELLED"
        stopped = console.enqueue(JobType.PLAN, snapshot={"source": source})
        stopped.wait_for("Fetching http")
        runner.signal(signal.SIGTERM)
        assert runner.wait(seconds=30) == 0
        assert stopped.wait_for_end().error_code == "runner_stopped"


def test_a_second_signal_kills_a_terraform_that_ignores_the_first(
    console: FakeConsole, start_runner: StartRunner, stubborn_terraform: str
) -> None:
    runner = start_runner(SLIPWAY_TERRAFORM=stubborn_terraform)
    job = deploy_when_planned(console, sleeping())
    job.wait_for("begun")
    runner.signal(signal.SIGTERM)
    wait_until(lambda: "Stopping" in runner.log, what="the first signal")
    runner.signal(signal.SIGTERM)
    assert runner.wait(seconds=RUNNER_STOP_SECONDS - 1) == 0
    assert job.final is not None
    assert job.final.error_code == "runner_stopped"
    assert not runner.terraform_processes()


def test_a_killed_runner_leaves_no_terraform_and_no_secret_behind(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    begun(console)
    assert runner.terraform_processes()
    runner.signal(signal.SIGKILL)
    wait_until(lambda: not runner.terraform_processes(), seconds=40, what="the end of Terraform")
    wait_until(lambda: not runner.workdirs(), what="the removal of the working directory")
    assert_ended_in_good_order(console, runner)


def test_a_watchdog_that_was_killed_is_replaced(console: FakeConsole, runner: RunnerProcess) -> None:
    job = begun(console)
    (watchdog,) = runner.watchdogs()
    os.kill(watchdog, signal.SIGKILL)
    beats = job.heartbeats
    wait_until(
        lambda: runner.watchdogs() not in ([], [watchdog]) and job.heartbeats > beats, what="a new watchdog"
    )
    runner.signal(signal.SIGKILL)
    wait_until(lambda: not runner.terraform_processes(), seconds=40, what="the end of Terraform")
    assert_ended_in_good_order(console, runner)


def test_a_sigterm_that_follows_a_ctrl_c_is_not_a_repeat(
    console: FakeConsole, start_runner: StartRunner, stubborn_terraform: str
) -> None:
    runner = start_runner(SLIPWAY_TERRAFORM=stubborn_terraform)
    job = deploy_when_planned(console, sleeping())
    job.wait_for("begun")
    runner.signal(signal.SIGINT)
    runner.signal(signal.SIGTERM)
    wait_until(lambda: "Stopping" in runner.log, what="the signals")
    beats = job.heartbeats
    wait_until(lambda: job.heartbeats > beats, what="another heartbeat")
    assert runner.terraform_processes()
    runner.signal(signal.SIGTERM)
    assert runner.wait() == 0


def test_a_runner_that_follows_a_killed_one_takes_jobs_again(
    console: FakeConsole, runner: RunnerProcess, start_runner: StartRunner
) -> None:
    begun(console)
    runner.signal(signal.SIGKILL)
    runner.wait()
    start_runner()
    job = console.enqueue(JobType.PLAN, sleeping())
    assert job.wait_for_end().status == "SUCCESS"


def test_two_runners_do_not_share_a_data_directory(
    console: FakeConsole, runner: RunnerProcess, start_runner: StartRunner
) -> None:
    wait_until(lambda: console.facts, what="the first runner's start")
    second = start_runner()
    assert second.wait() == 2
    assert "Another runner" in second.log


def test_terraform_is_gone_before_a_lease_that_cannot_be_renewed_ends(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    lease_seconds = 9
    job = begun(console, lease_seconds=lease_seconds)
    with console.away():
        away_since = time.monotonic()
        wait_until(
            lambda: not runner.terraform_processes(), seconds=lease_seconds, what="the end of Terraform"
        )
        assert time.monotonic() - away_since > 1.5  # not at the first missed beat
    final = job.wait_for_end()
    assert (final.status, final.error_code) == ("FAILED", "lease_lost")
    assert final.log == job.receipt
    assert_ended_in_good_order(console, runner)


def test_a_stopped_runner_loses_terraform_with_its_lease_and_says_nothing_later(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = begun(console, lease_seconds=8)
    runner.signal(signal.SIGSTOP)
    runner.wait_until_nothing_runs(seconds=20)
    job.stale = True
    runner.signal(signal.SIGCONT)
    following = console.enqueue(JobType.PLAN, {"main.tf": ""}, spec="other")
    assert following.wait_for_end().status == "SUCCESS"
    assert job.final is None


def test_a_cancel_that_comes_after_the_apply_does_not_hide_it(
    console: FakeConsole, start_runner: StartRunner, tmp_path: Path
) -> None:
    """The outputs are read slowly; the cancel comes in that time."""
    slow = tmp_path / "slow-outputs"
    slow.write_text(f"""#!/bin/sh
        if [ "$1" = output ]; then touch {tmp_path}/applied; sleep 3; fi
        exec {find_terraform().path} "$@"
    """)
    slow.chmod(0o755)
    start_runner(SLIPWAY_TERRAFORM=str(slow))
    job: FakeJob = deploy_when_planned(console, {"main.tf": 'resource "terraform_data" "a" {}'})
    wait_until((tmp_path / "applied").exists, what="the end of the apply")
    job.cancel = "person"
    assert job.wait_for_end().status == "SUCCESS"
