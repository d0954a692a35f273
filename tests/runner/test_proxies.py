"""Answers of proxies between a runner and its console are recognised and not used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from runner.client import ConsoleClient, Refused
from runner.protocol import ClaimRequest, JobStatus, JobType, RunnerFacts, StatusReport
from tests.runner.configurations import begun
from tests.runner.conftest import StartRunner
from tests.runner.fake_console import CREDENTIAL, FOREIGN, TOO_LARGE, FakeConsole, Foreign
from tests.waiting import wait_until

EMPTY = {"main.tf": ""}
FACTS = RunnerFacts(version="1", terraform_version="1.11.4", platform="linux/x86_64", slots=1, types=["PLAN"])


@pytest.fixture
def client(console: FakeConsole) -> Iterator[ConsoleClient]:
    with closing(ConsoleClient(console_url=console.url, credential=CREDENTIAL)) as client:
        client.hello(FACTS, give_up=lambda: True)
        yield client


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
def test_a_request_is_repeated_until_the_console_itself_answers(
    console: FakeConsole, client: ConsoleClient, foreign: Foreign
) -> None:
    job = console.enqueue(JobType.PLAN, EMPTY)
    for path in ("/claim$", "/logs$", "/status$"):
        console.answer_instead(path, foreign, times=1)
    claim = client.claim(ClaimRequest(claim_key="one", types=["PLAN"]), give_up=lambda: False)
    assert claim == job.claim
    line = b'{"at":"2026-01-01T00:00:00Z","level":"info","message":"one"}'
    client.append_log(claim.job_id, claim.claim_id, 1, [line], give_up=lambda: False)
    report = StatusReport(claim_id=claim.claim_id, status=JobStatus.SUCCESS, log=job.receipt)
    client.report(claim.job_id, report, give_up=lambda: False)
    assert (job.messages, job.final) == (["one"], report)


def test_a_proxy_that_takes_no_large_request_is_named_with_the_remedy(
    console: FakeConsole, start_runner: StartRunner
) -> None:
    console.answer_instead("/plan$", TOO_LARGE, times=1)
    start_runner()
    final = console.enqueue(JobType.PLAN, EMPTY).wait_for_end()
    assert (final.status, final.error_code) == ("FAILED", "console_refused")
    assert "Something in front of the console answers HTTP 413" in str(final.error_message)
    assert "Raise its limit, see docs/operating.md" in str(final.error_message)


def test_what_a_proxy_forbids_is_not_taken_for_the_consoles_word(
    console: FakeConsole, client: ConsoleClient
) -> None:
    console.answer_instead("/claim$", Foreign(403, b'{"detail": "Forbidden by rule 7"}'), times=1)
    with pytest.raises(Refused, match="Something in front of the console answers HTTP 403"):
        client.claim(ClaimRequest(claim_key="one", types=["PLAN"]), give_up=lambda: True)


def test_an_apply_goes_on_behind_pages_that_are_not_the_consoles(
    console: FakeConsole, start_runner: StartRunner
) -> None:
    runner = start_runner()
    job = begun(console)
    for path in ("/heartbeat$", "/heartbeat$", "/logs$"):
        console.answer_instead(path, FOREIGN["an authorization"], times=1)
    wait_until(lambda: "The console answers again" in runner.log, what="the end of the pages")
    beats = job.heartbeats
    wait_until(lambda: job.heartbeats > beats, what="another heartbeat")
    assert runner.terraform_processes()
    assert job.final is None


@pytest.mark.parametrize("foreign", [FOREIGN["a page"], FOREIGN["no such host"], FOREIGN["a redirect"]])
def test_an_address_that_never_was_a_console_is_told_in_one_line(
    console: FakeConsole, start_runner: StartRunner, foreign: Foreign
) -> None:
    console.answer_instead("/hello$", foreign, times=1)
    runner = start_runner()
    assert runner.wait() == 2
    assert f"{console.url}/api/runners/hello is answered by something else than a console" in runner.log
    assert (foreign.headers.get("Location") or f"HTTP {foreign.status}") in runner.log
