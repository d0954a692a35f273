"""Reading the log: by page, by level, from a number, as text, as a stream; and whether it is complete."""

from __future__ import annotations

import json

import pytest
from pytest_django import Settings

from console.janitor.services import take_back_lost_jobs
from console.jobs.models import Job
from runner.protocol import Claim, JobType, LogReceipt
from tests.console_app import Console, Http, RunnerClient, line, receipt
from tests.database_clock import let_lease_run_out
from tests.people import Tenant


@pytest.fixture
def viewer(console: Console, ours: Tenant) -> Http:
    return console.person(ours, "viewer")


@pytest.fixture
def claim(runner: RunnerClient, ours: Tenant) -> Claim:
    ours.request(JobType.DESTROY)
    return runner.take_and_start()


def read(viewer: Http, claim: Claim, query: str = "") -> list[tuple[int, str]]:
    answer = viewer.get(f"/api/jobs/{claim.job_id}/logs{query}")
    assert answer.status_code == 200, answer.text
    return [(line["seq"], line["message"]) for line in answer.json()["data"]]


def test_lines_come_with_number_time_level_message_and_data(
    runner: RunnerClient, viewer: Http, claim: Claim
) -> None:
    runner.log_lines(claim, 1, [line("hello", "warn", kind="phase", phase="init")])
    (stored,) = viewer.get(f"/api/jobs/{claim.job_id}/logs").json()["data"]
    assert stored == {
        "seq": 1,
        "at": "2026-01-01T00:00:00Z",
        "level": "warn",
        "message": "hello",
        "data": {"kind": "phase", "phase": "init"},
    }


def test_reading_goes_on_after_a_number_page_by_page(
    runner: RunnerClient, viewer: Http, claim: Claim
) -> None:
    """The pages have every line once, however it was batched."""
    seq = 1
    for size in (1, 7, 2, 40, 3):
        runner.log(claim, seq, *(f"line {seq + n}" for n in range(size)))
        seq += size
    everything = [(n, f"line {n}") for n in range(1, seq)]
    assert read(viewer, claim) == everything
    pages, after = [], 0
    while page := read(viewer, claim, f"?after={after}&limit=5"):
        assert len(page) <= 5
        pages += page
        after = page[-1][0]
    assert pages == everything
    for after in range(seq + 1):
        assert read(viewer, claim, f"?after={after}") == everything[after:]


def test_more_batches_than_one_read_takes(runner: RunnerClient, viewer: Http, claim: Claim) -> None:
    for n in range(1, 51):
        runner.log(claim, n, f"line {n}")
    assert read(viewer, claim, "?limit=45") == [(n, f"line {n}") for n in range(1, 46)]


def test_a_level_shows_it_and_worse(runner: RunnerClient, viewer: Http, claim: Claim) -> None:
    levels = ["debug", "info", "warn", "error", "info", "error"]
    runner.log_lines(claim, 1, [line(level, level) for level in levels])
    runner.log(claim, 7, "only info")
    runner.log(claim, 8, "the end", level="error")
    assert [seq for seq, _ in read(viewer, claim, "?level=error")] == [4, 6, 8]
    assert [seq for seq, _ in read(viewer, claim, "?level=warn")] == [3, 4, 6, 8]
    assert len(read(viewer, claim, "?level=debug")) == 8
    assert read(viewer, claim, "?level=error&after=4&limit=1") == [(6, "error")]


def test_many_batches_without_the_level_are_passed_over(
    runner: RunnerClient, viewer: Http, claim: Claim
) -> None:
    for n in range(1, 41):
        runner.log(claim, n, "chatter")
    runner.log(claim, 41, "trouble", level="error")
    assert read(viewer, claim, "?level=error&limit=10") == [(41, "trouble")]


@pytest.mark.parametrize("query", ["?after=-1", "?limit=0", "?limit=5001", "?level=loud", "?format=pdf"])
def test_a_query_that_makes_no_sense_is_refused(viewer: Http, claim: Claim, query: str) -> None:
    assert viewer.get(f"/api/jobs/{claim.job_id}/logs{query}").status_code == 400


def test_the_whole_log_as_plain_text(runner: RunnerClient, viewer: Http, claim: Claim) -> None:
    for n in range(1, 31):
        runner.log(claim, n, f"line {n}")
    answer = viewer.get(f"/api/jobs/{claim.job_id}/logs?format=text")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text == "".join(f"line {n}\n" for n in range(1, 31))


def test_the_stream_of_a_job_that_has_ended_is_its_log_and_its_status(
    runner: RunnerClient, viewer: Http, claim: Claim
) -> None:
    runner.log(claim, 1, "one", "two", "three")
    runner.succeed(claim, log=receipt(4, ["one", "two", "three"]))
    answer = viewer.get(f"/api/jobs/{claim.job_id}/logs?format=stream&after=1")
    frames = [json.loads(text) for text in answer.text.splitlines()]
    assert [frame.get("message") for frame in frames] == ["two", "three", None]
    assert [frame.get("seq") for frame in frames] == [2, 3, None]
    assert frames[-1] == {"status": "SUCCESS"}


def test_the_stream_follows_a_job_to_its_end(runner: RunnerClient, viewer: Http, claim: Claim) -> None:
    runner.log(claim, 1, "before")
    following = viewer.begin("GET", f"/api/jobs/{claim.job_id}/logs?format=stream")
    for n in range(2, 60):
        runner.log(claim, n, f"line {n}")
    runner.succeed(claim)
    frames = [json.loads(text) for text in following.result(20).text.splitlines()]
    assert [frame.get("seq") for frame in frames] == [*range(1, 60), None]
    assert frames[-1] == {"status": "SUCCESS"}


def completeness(viewer: Http, claim: Claim) -> str:
    return str(viewer.get(f"/api/jobs/{claim.job_id}/logs").json()["completeness"])


def end(runner: RunnerClient, claim: Claim, log: LogReceipt | dict[str, object] | None) -> None:
    assert runner.succeed(claim, log=log).status_code == 200


def test_complete_when_line_count_and_chain_agree(runner: RunnerClient, viewer: Http, claim: Claim) -> None:
    runner.log(claim, 1, "one", "two")
    assert completeness(viewer, claim) == ""
    end(runner, claim, receipt(3, ["one", "two"]))
    assert completeness(viewer, claim) == "complete"


def test_complete_without_a_line(runner: RunnerClient, viewer: Http, claim: Claim) -> None:
    end(runner, claim, receipt(1))
    assert completeness(viewer, claim) == "complete"


def test_missing_lines_are_named(runner: RunnerClient, viewer: Http, claim: Claim) -> None:
    runner.log(claim, 1, "one", "two")
    end(runner, claim, receipt(6, ["one", "two"], ["three", "four", "five"]))
    assert completeness(viewer, claim) == "lines 3–5 missing"


def test_other_lines_than_were_sent_are_noticed(runner: RunnerClient, viewer: Http, claim: Claim) -> None:
    runner.log(claim, 1, "one", "two")
    end(runner, claim, receipt(3, ["one", "zwei"]))
    assert completeness(viewer, claim) == "differs from what the runner sent"


def test_a_lost_attempts_log_may_end_early(
    console: Console, runner: RunnerClient, viewer: Http, claim: Claim
) -> None:
    runner.log(claim, 1, "one")
    let_lease_run_out(claim.job_id)
    take_back_lost_jobs()
    assert completeness(viewer, claim) == "may end early: the attempt was lost before it reported"


def test_a_log_that_reached_the_limit_says_so(
    runner: RunnerClient, viewer: Http, claim: Claim, settings: Settings
) -> None:
    settings.SLIPWAY_MAX_LOG_BYTES = 1_000
    runner.log(claim, 1, *["x" * 400] * 3)
    end(runner, claim, receipt(9, ["x" * 400] * 3))
    assert completeness(viewer, claim) == "cut at the size limit"


def test_a_job_cancelled_before_it_began_has_a_complete_empty_log(
    console: Console, viewer: Http, ours: Tenant
) -> None:
    job = ours.request()
    console.person(ours, "operator").post(f"/api/jobs/{job.pk}/cancel")
    answer = viewer.get(f"/api/jobs/{job.pk}/logs").json()
    assert answer == {"data": [], "last_seq": 0, "completeness": "complete"}


def test_the_last_number_is_known_while_it_runs_and_after(
    runner: RunnerClient, viewer: Http, claim: Claim
) -> None:
    def last_seq() -> int:
        return int(viewer.get(f"/api/jobs/{claim.job_id}/logs?limit=1").json()["last_seq"])

    assert last_seq() == 0
    runner.log(claim, 1, "one", "two")
    assert last_seq() == 2
    runner.succeed(claim)
    assert last_seq() == 2
    assert Job.objects.get(pk=claim.job_id).log_next_seq == 3
