"""No line is lost or doubled, whatever happens between the runner and the console."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.client import LogFull, LogGap
from runner.log import DUE_LINES, LogPipe
from runner.protocol import MAX_BATCH_LINES, MAX_LINE_CHARS, JobType, LogAnswer, LogLevel
from runner.redact import Redactor
from runner.terraform.output import Event
from runner.terraform.process import LineSplitter
from tests.runner.configurations import deploy_when_planned, sleeping
from tests.runner.conftest import RunnerProcess
from tests.runner.fake_console import FakeConsole, FakeJob
from tests.waiting import wait_until

COUNTING = sleeping("for i in $(seq 1 30); do echo count $i; sleep 0.05; done")


def counted(job: FakeJob) -> list[str]:
    return [message.split(": ")[-1] for message in job.messages if "(local-exec): count" in message]


def test_a_console_that_was_away_gets_every_line_once_and_in_order(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = deploy_when_planned(console, COUNTING)
    job.wait_for("count 5")
    with console.away():
        wait_until(lambda: console.unanswered >= 4, what="some tries in vain")
    final = job.wait_for_end()
    assert final.status == "SUCCESS"
    assert counted(job) == [f"count {number}" for number in range(1, 31)]
    assert final.log == job.receipt
    assert "does not answer" in runner.log
    assert "answers again" in runner.log


def test_lost_answers_to_log_batches_double_nothing(console: FakeConsole, runner: RunnerProcess) -> None:
    job = deploy_when_planned(console, COUNTING)
    console.lose_answers("/logs$", times=3)
    assert job.wait_for_end().log == job.receipt
    assert counted(job) == [f"count {number}" for number in range(1, 31)]


def test_lines_that_the_console_lost_in_a_crash_are_sent_again(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = deploy_when_planned(console, COUNTING)
    job.wait_for("count 5")
    console.lose_last_batch(job)
    assert job.wait_for_end().log == job.receipt
    assert counted(job) == [f"count {number}" for number in range(1, 31)]


def test_a_final_report_whose_answer_is_lost_is_made_again_and_counts_once(
    console: FakeConsole, runner: RunnerProcess
) -> None:
    job = console.enqueue(JobType.PLAN, {"main.tf": ""})
    console.lose_answers("/status$", times=3)
    job.wait_for_end()
    wait_until(lambda: "SUCCESS, now SUCCESS" in runner.log, what="an accepted report")
    assert job.statuses == ["PROCESSING", "SUCCESS"]


def test_a_full_log_does_not_stop_the_job(console: FakeConsole, runner: RunnerProcess) -> None:
    job = console.enqueue(JobType.PLAN, {"main.tf": ""}, log_limit=3)
    assert job.wait_for_end().status == "SUCCESS"


class Recorder:
    """Accepts batches like a console, without the network between."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.refusal: Exception | None = None

    def __call__(self, first_seq: int, lines: list[bytes]) -> LogAnswer:
        if self.refusal:
            raise self.refusal
        assert first_seq == sum(map(len, self.batches)) + 1
        self.batches.append(lines)
        return LogAnswer(next_seq=first_seq + len(lines))

    @property
    def text(self) -> str:
        return "\n".join(line.decode() for batch in self.batches for line in batch)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def make_pipe(recorder: Recorder, tmp_path: Path) -> Callable[..., LogPipe]:
    def make(*secrets: str, memory_bytes: int = 10**6) -> LogPipe:
        pipe = LogPipe(
            send=recorder,
            first_seq=1,
            redactor=Redactor(secrets),
            spool_dir=tmp_path,
            memory_bytes=memory_bytes,
        )
        pipe.start()
        return pipe

    return make


def test_what_memory_does_not_hold_waits_on_disk_in_order(
    make_pipe: Callable[..., LogPipe], recorder: Recorder
) -> None:
    pipe = make_pipe(memory_bytes=2000)
    for number in range(5000):
        pipe.write(f"line {number}")
    assert pipe.close().next_seq == 5001
    assert [text.split('"message":"')[1] for text in recorder.text.splitlines()] == [
        f'line {number}"}}' for number in range(5000)
    ]


def test_a_long_line_is_masked_as_a_whole_and_then_cut(
    make_pipe: Callable[..., LogPipe], recorder: Recorder
) -> None:
    pipe = make_pipe("the-secret")
    pipe.write("x" * (MAX_LINE_CHARS - 45) + "the-secret" + "y" * 10_000)
    pipe.close()
    assert "the-s" not in recorder.text
    assert "more characters" in recorder.text


def test_a_message_of_several_lines_becomes_several_lines(
    make_pipe: Callable[..., LogPipe], recorder: Recorder
) -> None:
    pipe = make_pipe()
    pipe.write("one\ntwo", LogLevel.WARN, {"kind": "phase"})
    assert pipe.close().next_seq == 3
    assert recorder.text.count('"kind"') == 1


def test_text_that_no_database_takes_is_made_harmless(
    make_pipe: Callable[..., LogPipe], recorder: Recorder
) -> None:
    pipe = make_pipe()
    pipe.write("nul \0, lone surrogate \ud800, literal \\u0000", data={"odd": "\0 and \\u0000"})
    pipe.close()
    assert "\\u0000 " not in recorder.text.replace("\\\\u0000", "")
    assert "\ud800" not in recorder.text
    assert "literal \\\\u0000" in recorder.text


@pytest.mark.parametrize(
    "refusal",
    [
        LogFull(status=413, code="log_full", detail=""),
        LogGap(status=409, code="log_gap", detail="", expected_seq=999),
    ],
)
def test_a_refused_log_neither_blocks_nor_grows(
    make_pipe: Callable[..., LogPipe], recorder: Recorder, refusal: Exception
) -> None:
    recorder.refusal = refusal
    pipe = make_pipe()
    for number in range(2000):
        pipe.write(f"line {number}")
    assert pipe.close().next_seq == 1


def test_what_has_gathered_meanwhile_goes_out_together(tmp_path: Path) -> None:
    sizes: list[int] = []
    gathered = threading.Event()

    def send(first_seq: int, lines: list[bytes]) -> LogAnswer:
        sizes.append(len(lines))
        assert gathered.wait(60)
        return LogAnswer(next_seq=first_seq + len(lines))

    pipe = LogPipe(send=send, first_seq=1, redactor=Redactor(), spool_dir=tmp_path)
    pipe.start()
    pipe.write("the first line")
    wait_until(lambda: sizes, what="a batch that is not answered yet")
    pipe.write_events([Event("another")] * (MAX_BATCH_LINES + DUE_LINES), [])
    gathered.set()
    assert pipe.close().next_seq == 2 + MAX_BATCH_LINES + DUE_LINES
    assert sizes == [1, MAX_BATCH_LINES, DUE_LINES]


@given(
    printed=st.lists(st.sampled_from([b"one", b"\n", b"\r\n", b"\xc3\xa9", b"\xc3", b"\r"]), max_size=40),
    cuts=st.lists(st.integers(0, 120), max_size=6),
    limit=st.sampled_from([12, 1000]),
)
def test_where_chunks_are_cut_makes_no_difference(printed: list[bytes], cuts: list[int], limit: int) -> None:
    text = b"".join(printed)
    borders = [0, *sorted(cuts), len(text)]
    assert split([text[a:b] for a, b in pairwise(borders)], limit) == split([text], limit)


def split(chunks: list[bytes], limit: int) -> list[str]:
    lines: list[str] = []
    splitter = LineSplitter(lines.extend, limit=limit)
    for chunk in chunks:
        splitter.feed(chunk)
    splitter.end()
    return lines


def test_lines_are_whole_however_the_chunks_fall() -> None:
    lines: list[str] = []
    splitter = LineSplitter(lines.extend)
    for chunk in (b"on", b"e\ntw", b"o\r\n\nthr\xc3", b"\xa9e"):
        splitter.feed(chunk)
    splitter.end()
    assert lines == ["one", "two", "", "thrée"]


def test_an_endless_line_does_not_fill_the_memory() -> None:
    lines: list[str] = []
    splitter = LineSplitter(lines.extend, limit=10)
    splitter.feed(b"0123456789abc")
    splitter.feed(b"def\nshort\n")
    assert lines == ["0123456789 … (6 more bytes)", "short"]
