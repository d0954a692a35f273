"""A runner that stops in good order says so, once, and waits for nobody to hear it.

So on a busy machine the word may be heard after the runner has gone, and the tests wait for it.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

import pytest

from runner.protocol import JobType
from tests.runner.conftest import RunnerProcess, StartRunner
from tests.runner.fake_console import FakeConsole
from tests.waiting import wait_until

#: The time in which an idle runner ends; below the 20 s that any other request waits for its answer.
STOP_SECONDS = 15


def stop_when_waiting(
    console: FakeConsole, runner: RunnerProcess, number: signal.Signals, *, earlier: Sequence[str] = ()
) -> None:
    """`earlier` are the claim requests of another start, which the console may still look at."""
    wait_until(lambda: set(console.claim_keys) - set(earlier), what="the first claim request")
    runner.signal(number)
    assert runner.wait(seconds=STOP_SECONDS) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_with_the_goodbye_of_this_start(
    console: FakeConsole, runner: RunnerProcess, number: signal.Signals
) -> None:
    stop_when_waiting(console, runner, number)
    wait_until(lambda: console.goodbyes, what="the goodbye")
    (hello,), (goodbye,) = console.facts, console.goodbyes
    assert hello.start_id == goodbye.start_id != ""


def test_each_start_is_another(console: FakeConsole, start_runner: StartRunner) -> None:
    stop_when_waiting(console, start_runner(), signal.SIGTERM)
    stop_when_waiting(console, start_runner(), signal.SIGTERM, earlier=list(console.claim_keys))
    wait_until(lambda: len(console.goodbyes) == 2, what="both goodbyes")
    first, second = console.goodbyes
    assert first != second


def test_a_runner_without_more_to_do_says_goodbye_after_its_report(
    console: FakeConsole, start_runner: StartRunner
) -> None:
    job = console.enqueue(JobType.PLAN, {"main.tf": ""})
    runner = start_runner("--once")
    assert job.wait_for_end().status == "SUCCESS"
    assert runner.wait(seconds=STOP_SECONDS) == 0
    wait_until(lambda: console.goodbyes, what="the goodbye")
    assert console.requests[-1] == "POST /api/runners/goodbye"


def test_a_console_that_does_not_know_the_word_is_no_trouble(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    console.goodbye_status = 404
    stop_when_waiting(console, runner, signal.SIGTERM)
    wait_until(lambda: console.goodbyes, what="the goodbye")
    assert not {"WARNING", "ERROR"} & set(runner.log.split())


def test_a_console_that_does_not_answer_is_not_waited_for(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    """It accepts the request and does not answer for as long as the test lasts."""
    console.answers_goodbyes.clear()
    stop_when_waiting(console, runner, signal.SIGTERM)
    wait_until(lambda: console.goodbyes, what="the goodbye")
    assert not {"WARNING", "ERROR"} & set(runner.log.split())


def test_a_console_that_is_gone_keeps_no_runner_from_ending(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    wait_until(lambda: console.claim_keys, what="the first claim request")
    with console.away():
        runner.signal(signal.SIGTERM)
        assert runner.wait(seconds=STOP_SECONDS) == 0
    assert console.unanswered, "it was asked"
    assert console.goodbyes == []


def test_a_runner_that_was_revoked_has_nothing_to_say(console: FakeConsole, runner: RunnerProcess) -> None:
    wait_until(lambda: console.claim_keys, what="the first claim request")
    console.credentials.clear()
    assert runner.wait(seconds=STOP_SECONDS) == 2
    assert "POST /api/runners/goodbye" not in console.requests
