"""A runner claims jobs, and stops when it is told to or refused."""

from __future__ import annotations

import signal
from pathlib import Path

from runner.loop import CLAIM_WAIT_SECONDS
from runner.protocol import JobType
from tests.runner.configurations import begun, deploy_when_planned, sleeping
from tests.runner.conftest import RunnerProcess, StartRunner
from tests.runner.fake_console import FakeConsole, Foreign
from tests.waiting import wait_until

EMPTY = {"main.tf": ""}


def test_a_claim_whose_answer_is_lost_is_asked_for_again_with_the_same_key(
    console: FakeConsole, start_runner: StartRunner
) -> None:
    job = console.enqueue(JobType.PLAN, EMPTY)
    console.lose_answers("/claim$", times=2)
    start_runner()
    assert job.wait_for_end().status == "SUCCESS"
    first, second, third = console.claim_keys[:3]
    assert first == second == third == job.claim_key
    assert job.statuses == ["PROCESSING", "SUCCESS"]


def test_each_new_claim_has_a_new_key(console: FakeConsole, runner: RunnerProcess) -> None:
    jobs = [console.enqueue(JobType.PLAN, EMPTY, spec=name) for name in ("one", "two")]
    for job in jobs:
        job.wait_for_end()
    assert jobs[0].claim_key != jobs[1].claim_key


def test_a_claim_that_went_stale_on_its_way_is_not_started(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = console.enqueue(JobType.PLAN, EMPTY)
    job.stale = True
    following = console.enqueue(JobType.PLAN, EMPTY, spec="other")
    following.wait_for_end()
    assert job.claim_key
    assert not job.reports
    assert not job.lines


def test_a_job_that_a_runner_does_not_understand_is_reported_and_the_next_one_is_done(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    odd = console.enqueue(JobType.PLAN, EMPTY, snapshot=["of", "another", "shape"])
    following = console.enqueue(JobType.PLAN, EMPTY, spec="other")
    report = odd.wait_for_end()
    assert (report.status, report.error_code) == ("FAILED", "invalid_message")
    assert "does not understand this job (/api/jobs/claim: snapshot: expected dict" in (
        report.error_message or ""
    )
    assert following.wait_for_end().status == "SUCCESS"


def test_a_slot_is_free_again_when_the_claim_is_gone_whatever_fails_meanwhile(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = console.enqueue(JobType.PLAN, EMPTY)
    console.answer_instead(f"{job.claim.job_id}/logs$", Foreign(500), times=1_000)
    wait_until(lambda: job.uploaded, what="the plan")
    job.stale = True
    following = console.enqueue(JobType.PLAN, EMPTY, spec="other")
    assert following.wait_for_end().status == "SUCCESS"
    assert job.final is None


def test_slots_work_side_by_side(console: FakeConsole, start_runner: StartRunner) -> None:
    start_runner("--slots", "2")
    slow = begun(console)
    quick = console.enqueue(JobType.PLAN, EMPTY, spec="other")
    assert quick.wait_for_end().status == "SUCCESS"
    assert slow.final is None


def test_once_is_one_job_and_then_the_end(console: FakeConsole, start_runner: StartRunner) -> None:
    jobs = [console.enqueue(JobType.PLAN, EMPTY, spec=name) for name in ("one", "two")]
    assert start_runner("--once").wait() == 0
    assert [job.final is not None for job in jobs] == [True, False]


def test_a_drain_ends_no_runner(console: FakeConsole, runner: RunnerProcess, tmp_path: Path) -> None:
    """A drain only means that the console hands out no jobs: afterwards the runner is needed again."""
    finish = tmp_path / "finish"
    waiting = sleeping(f"echo begun; until [ -e {finish} ]; do sleep 0.1; done")
    job = deploy_when_planned(console, waiting)
    job.wait_for("(local-exec): begun")
    console.drain = True
    wait_until(lambda: "The console drains" in runner.log, what="the heartbeat that says so")
    finish.touch()
    assert job.wait_for_end().status == "SUCCESS"
    console.drain = False
    assert console.enqueue(JobType.PLAN, EMPTY, spec="other").wait_for_end().status == "SUCCESS"
    assert runner.log.count("The console drains") == 1


def test_an_idle_runner_stops_at_once(console: FakeConsole, runner: RunnerProcess) -> None:
    console.holds_seconds = CLAIM_WAIT_SECONDS
    wait_until(lambda: len(console.claim_keys) > 1, what="a claim that is held for long")
    runner.signal(signal.SIGTERM)
    assert runner.wait(seconds=CLAIM_WAIT_SECONDS - 5) == 0


def test_a_revoked_runner_ends(console: FakeConsole, runner: RunnerProcess) -> None:
    wait_until(lambda: console.claim_keys, what="the first claim")
    console.credentials.clear()
    assert runner.wait() == 2
    assert "no longer accepts this runner" in runner.log


def test_a_runner_waits_for_a_console_that_is_not_there_yet(
    console: FakeConsole, start_runner: StartRunner
) -> None:
    job = console.enqueue(JobType.PLAN, EMPTY)
    with console.away():
        start_runner()
        wait_until(lambda: console.unanswered >= 3, what="some tries in vain")
    assert job.wait_for_end().status == "SUCCESS"
