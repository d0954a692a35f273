"""Writing the log: by offset, so that a repeat is harmless and nothing is lost or doubled."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from console.accounts.tokens import new_token
from console.jobs.log import masking
from console.jobs.log.selectors import log_completeness, log_lines
from console.jobs.models import Job, JobClaim, LogChunk
from runner.log import _BATCH_BYTES
from runner.protocol import (
    EMPTY_CHAIN,
    MAX_BATCH_BYTES,
    MAX_BATCH_LINES,
    MAX_LINE_CHARS,
    Claim,
    extend_chain,
)
from specs.services import change_variable
from tests.console_app import RunnerClient, code_of, line, receipt
from tests.database_clock import let_retry_wait_pass
from tests.people import Tenant, fresh


@pytest.fixture
def claim(runner: RunnerClient, ours: Tenant) -> Claim:
    ours.request()
    return runner.take_and_start()


def messages_of(claim: Claim) -> list[tuple[int, str]]:
    return [(seq, line["message"]) for seq, line in log_lines(Job.objects.get(pk=claim.job_id), limit=5_000)]


def test_lines_are_numbered_from_one_and_the_answer_says_how_to_go_on(
    runner: RunnerClient, claim: Claim
) -> None:
    assert runner.log(claim, 1, "one", "two").json() == {"next_seq": 3}
    assert runner.log(claim, 3, "three").json() == {"next_seq": 4}
    assert messages_of(claim) == [(1, "one"), (2, "two"), (3, "three")]


def test_a_batch_is_one_row(runner: RunnerClient, claim: Claim) -> None:
    runner.log(claim, 1, *(f"line {n}" for n in range(100)))
    assert LogChunk.objects.filter(job_id=claim.job_id).count() == 1


def test_a_batch_again_is_accepted_and_kept_once(runner: RunnerClient, claim: Claim) -> None:
    runner.log(claim, 1, "one", "two")
    runner.log(claim, 3, "three")
    assert runner.log(claim, 1, "one", "two").json() == {"next_seq": 4}
    assert runner.log(claim, 3, "three").json() == {"next_seq": 4}
    assert messages_of(claim) == [(1, "one"), (2, "two"), (3, "three")]


def test_a_gap_is_answered_with_the_line_to_go_on_at(runner: RunnerClient, claim: Claim) -> None:
    runner.log(claim, 1, "one")
    answer = runner.log(claim, 5, "five")
    assert (answer.status_code, code_of(answer)) == (409, "log_gap")
    assert answer.json()["expected_seq"] == 2
    assert messages_of(claim) == [(1, "one")]


def test_a_batch_that_overlaps_the_end_is_answered_with_the_line_to_go_on_at(
    runner: RunnerClient, claim: Claim
) -> None:
    runner.log(claim, 1, "one", "two")
    answer = runner.log(claim, 2, "two", "three")
    assert (answer.status_code, code_of(answer), answer.json()["expected_seq"]) == (409, "log_gap", 3)
    assert messages_of(claim) == [(1, "one"), (2, "two")]


def test_the_chain_is_equal_on_both_sides(runner: RunnerClient, claim: Claim) -> None:
    batches, chain, seq = [["one", "zwei ü"], ["", "\ttab"], ["drei €"]], EMPTY_CHAIN, 1
    for batch in batches:
        runner.log(claim, seq, *batch)
        runner.log(claim, seq, *batch)  # a repeat extends nothing
        chain, seq = extend_chain(chain, batch), seq + len(batch)
    assert JobClaim.objects.get().log_chain == chain


def test_every_attempt_begins_a_chain_of_its_own(runner: RunnerClient, claim: Claim, ours: Tenant) -> None:
    runner.log(claim, 1, "one")
    runner.fail(claim, log=receipt(2, ["one"]))
    let_retry_wait_pass(claim.job_id)
    second = runner.take_and_start()
    runner.log(second, 2, "two")
    assert JobClaim.objects.get().log_chain == extend_chain(EMPTY_CHAIN, ["two"])
    assert messages_of(second) == [(1, "one"), (2, "two")]


def test_a_line_has_at_most_so_many_characters(runner: RunnerClient, claim: Claim) -> None:
    assert runner.log(claim, 1, "x" * MAX_LINE_CHARS).status_code == 200
    answer = runner.log(claim, 2, "fine", "x" * (MAX_LINE_CHARS + 1))
    assert (answer.status_code, code_of(answer)) == (413, "too_large")
    assert "lines[1]" in answer.json()["detail"]


def test_a_batch_has_at_most_so_many_lines(runner: RunnerClient, claim: Claim) -> None:
    assert runner.log(claim, 1, *["x"] * MAX_BATCH_LINES).status_code == 200
    answer = runner.log(claim, MAX_BATCH_LINES + 1, *["x"] * (MAX_BATCH_LINES + 1))
    assert (answer.status_code, code_of(answer)) == (413, "too_large")
    assert runner.log_lines(claim, MAX_BATCH_LINES + 1, []).status_code == 413


def test_a_batch_has_at_most_so_many_bytes(runner: RunnerClient, claim: Claim) -> None:
    lines = ["x" * MAX_LINE_CHARS] * (MAX_BATCH_BYTES // MAX_LINE_CHARS + 1)
    answer = runner.log(claim, 1, *lines)
    assert (answer.status_code, code_of(answer)) == (413, "too_large")
    assert messages_of(claim) == []


def test_bytes_are_counted_and_not_characters(runner: RunnerClient, claim: Claim, settings: Settings) -> None:
    """Three bytes each in UTF-8: the batch has few enough characters, and too many bytes."""
    long = "€" * MAX_LINE_CHARS
    wide = [long] * (MAX_BATCH_BYTES // len(long.encode()) + 1)
    assert sum(map(len, wide)) < MAX_BATCH_BYTES // 2
    answer = runner.log(claim, 1, *wide)
    assert (answer.status_code, code_of(answer)) == (413, "too_large")
    settings.SLIPWAY_MAX_LOG_BYTES = 2_000
    assert runner.log(claim, 1, "€" * 500).json() == {"next_seq": 2}
    assert runner.log(claim, 2, "€" * 200).json() == {"next_seq": 4}, "this one, and the line that says so"


def test_the_largest_batch_that_a_runner_makes_is_taken(runner: RunnerClient, claim: Claim) -> None:
    """The console writes a little more around each line than the runner does."""
    empty = len(b'{"at":"2026-01-01T00:00:00Z","level":"info","message":""}')
    message = "x" * (_BATCH_BYTES // MAX_BATCH_LINES - empty - 1)
    assert runner.log(claim, 1, *[message] * MAX_BATCH_LINES).status_code == 200


def test_a_body_beyond_all_measure_is_refused(runner: RunnerClient, claim: Claim) -> None:
    answer = runner.post(f"/api/jobs/{claim.job_id}/logs", content=b"[" + b" " * 5 * 1024 * 1024)
    assert (answer.status_code, code_of(answer)) == (413, "too_large")


def test_a_full_log_ends_with_a_line_that_says_so(
    runner: RunnerClient, claim: Claim, settings: Settings
) -> None:
    settings.SLIPWAY_MAX_LOG_BYTES = 2_000
    answer = runner.log(claim, 1, *["x" * 400] * 6)
    assert answer.json() == {"next_seq": 8}, "six lines, and the console's own"
    refused = runner.log(claim, 8, "one more")
    assert (refused.status_code, code_of(refused)) == (413, "log_full")
    assert runner.log(claim, 1, *["x" * 400] * 6).json() == {"next_seq": 8}, "a repeat is still a repeat"
    assert "reached its limit" in messages_of(claim)[-1][1]
    runner.succeed(claim, log=receipt(7, ["x" * 400] * 6))
    assert runner.heartbeat(claim).status_code == 409


def test_the_size_counts_over_all_attempts(runner: RunnerClient, claim: Claim, settings: Settings) -> None:
    settings.SLIPWAY_MAX_LOG_BYTES = 2_000
    runner.log(claim, 1, *["x" * 400] * 3)
    runner.fail(claim)
    let_retry_wait_pass(claim.job_id)
    second = runner.take_and_start()
    assert runner.log(second, 4, *["x" * 400] * 3).json() == {"next_seq": 8}


@pytest.mark.parametrize("kind", ["slr", "slt", "slu", "sls"])
@pytest.mark.parametrize(
    "around",
    ["{}", "password={}", "tab\t{}", "\x1b[31m{}\x1b[0m", "line\n{}", "TF_TOKEN_{}", "“{}”", "a{}"],
)
def test_a_token_of_ours_is_masked_wherever_it_stands(
    runner: RunnerClient, claim: Claim, kind: str, around: str
) -> None:
    token = new_token(kind)
    lines = [line(around.format(token)), line("data", detail=around.format(token))]
    assert runner.log_lines(claim, 1, lines).status_code == 200
    stored = LogChunk.objects.get(job_id=claim.job_id).lines
    assert token not in stored
    assert stored.count("(sensitive)") == 2


def test_the_state_credential_of_the_claim_is_masked(runner: RunnerClient, claim: Claim) -> None:
    assert claim.state is not None
    runner.log(claim, 1, f"Authorization: {claim.state.password}")
    assert messages_of(claim) == [(1, "Authorization: (sensitive)")]


def secret_claim(runner: RunnerClient, ours: Tenant) -> Claim:
    """A Spec with a secret of two lines, one word of which is everywhere in the log."""
    for name, value in (("KEY", "first half\nsecond half"), ("WORD", "message")):
        change_variable(
            spec=ours.spec,
            category="environment",
            name=name,
            value=value,
            sensitive=True,
            author=ours.operator,
        )
    ours.request()
    return runner.take_and_start()


@pytest.mark.parametrize("answered_by", ["this process", "another process"])
def test_a_secret_that_a_runner_did_not_mask_is_masked_here(
    runner: RunnerClient, ours: Tenant, answered_by: str
) -> None:
    claim = secret_claim(runner, ours)
    if answered_by == "another process":
        masking.forget_secrets(UUID(claim.claim_id))
    lines = [line("a message: first half"), line("second half", error={"detail": ["see second half"]})]
    assert runner.log_lines(claim, 1, lines).status_code == 200
    stored = [line for _, line in log_lines(Job.objects.get(pk=claim.job_id), limit=10)]
    assert [line["message"] for line in stored] == ["a (sensitive): (sensitive)", "(sensitive)"]
    assert stored[1]["data"]["error"] == {"detail": ["see (sensitive)"]}


def test_what_is_masked_here_is_still_the_log_that_the_runner_vouches_for(
    runner: RunnerClient, ours: Tenant
) -> None:
    claim = secret_claim(runner, ours)
    runner.log(claim, 1, "first half")
    assert runner.succeed(claim, log=receipt(2, ["first half"])).status_code == 200
    assert log_completeness(Job.objects.get(pk=claim.job_id)) == "complete"
    assert UUID(claim.claim_id) not in masking._remembered


@pytest.mark.parametrize(
    "bad",
    [
        "text",
        {},
        {"at": "now", "level": "info"},
        {"at": "now", "level": "loud", "message": "x"},
        {"at": 1, "level": "info", "message": "x"},
        {"at": "now", "level": "info", "message": 5},
        {"at": "now", "level": ["info"], "message": "x"},
    ],
)
def test_a_malformed_line_is_named(runner: RunnerClient, claim: Claim, bad: Any) -> None:
    answer = runner.log_lines(claim, 1, [line("fine"), bad])
    assert (answer.status_code, code_of(answer)) == (400, "invalid_message")
    assert "lines[1]" in answer.json()["detail"]


@pytest.mark.parametrize(
    "change",
    [{"first_seq": 0}, {"first_seq": "1"}, {"first_seq": None}, {"lines": "x"}, {"claim_id": 5}],
)
def test_a_malformed_batch_is_refused(runner: RunnerClient, claim: Claim, change: dict[str, Any]) -> None:
    body = {"claim_id": claim.claim_id, "first_seq": 1, "lines": [line("x")], **change}
    answer = runner.post(f"/api/jobs/{claim.job_id}/logs", json=body)
    assert (answer.status_code, code_of(answer)) == (400, "invalid_message")


def test_awkward_characters_survive(runner: RunnerClient, claim: Claim) -> None:
    awkward = ["\0", "a\nb", "\r", '"\\', "😀", "\u2028", "", "\x1b[1m"]
    assert runner.log(claim, 1, *awkward).status_code == 200
    assert [message for _, message in messages_of(claim)] == awkward


@pytest.mark.parametrize("round", range(3))
def test_the_same_batch_sent_many_times_at_once_is_kept_once(
    runner: RunnerClient, claim: Claim, round: int
) -> None:
    body = {"claim_id": claim.claim_id, "first_seq": 1, "lines": [line("one"), line("two")]}
    sent = [runner.begin("POST", f"/api/jobs/{claim.job_id}/logs", json=body) for _ in range(8)]
    assert {answer.result(10).text for answer in sent} == {'{"next_seq":3}'}
    assert messages_of(claim) == [(1, "one"), (2, "two")]


def test_after_the_end_no_line_is_accepted(runner: RunnerClient, claim: Claim) -> None:
    runner.log(claim, 1, "one")
    runner.succeed(claim, log=receipt(2, ["one"]))
    answer = runner.log(claim, 2, "two")
    assert (answer.status_code, code_of(answer)) == (409, "stale_claim")
    assert fresh(Job.objects.get(pk=claim.job_id)).log_next_seq == 2
