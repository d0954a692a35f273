"""Processes of bare runners, told over a pipe what to do: they share no interpreter with the console.

Nothing here may import Django: the processes are spawned, and start in a moment.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import random
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from bench.wire_client import TIMEOUT_SECONDS, Console, WireRunner

#: Long enough to be idle for a whole pause of the benchmark, within what the console allows.
HOLD_SECONDS = 25.0

BATCH_LINES = 500
LINE_BYTES = 125
#: How many different batches are sent: lines that all look alike would compress too well.
DIFFERENT_BATCHES = 16


class Clients:
    """One such process, seen from the benchmark."""

    def __init__(self, serve: Callable[..., None], console: Console, credentials: list[str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._line, child_end = context.Pipe()
        self._process = context.Process(target=serve, args=(child_end, console, credentials), daemon=True)
        self._process.start()
        child_end.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.close()
        self._process.join(TIMEOUT_SECONDS)

    def tell(self, what: object) -> None:
        self._line.send(what)

    def hear(self) -> Any:
        return self._line.recv()

    def ask(self, what: object) -> Any:
        self.tell(what)
        return self.hear()


# ── what the processes do ────────────────────────────────────────────────────────────────────────


def run_jobs(line: Connection, console: Console, credentials: list[str]) -> None:
    """Answer each count with the seconds that the runners took to run that many jobs each."""
    runners = [WireRunner(console, credential) for credential in credentials]
    for count in _questions(line):
        line.send(_together(runners, functools.partial(_run_jobs, count=count)))


def wait_for_jobs(line: Connection, console: Console, credentials: list[str]) -> None:
    """Answer each question with the time at which a job arrived, then run the job."""
    (credential,) = credentials
    runner = WireRunner(console, credential)
    for _ in _questions(line):
        line.send("waiting")
        claim = None
        while claim is None:
            claim = runner.claim(wait_seconds=HOLD_SECONDS)
        line.send(time.monotonic())
        runner.run_job(claim)


def send_logs(line: Connection, console: Console, credentials: list[str]) -> None:
    """Answer each count with the seconds that the runners took to send that many batches each."""
    writers = [_LogWriter(WireRunner(console, credential)) for credential in credentials]
    for count in _questions(line):
        line.send(_together(writers, functools.partial(_LogWriter.send, count=count)))


def _run_jobs(runner: WireRunner, count: int) -> None:
    for _ in range(count):
        claim = runner.claim()
        assert claim is not None, "the queue ran dry"
        runner.run_job(claim)


class _LogWriter:
    """One job whose log grows; the lines are encoded beforehand, so that only the console works."""

    def __init__(self, runner: WireRunner) -> None:
        claim = runner.claim()
        assert claim is not None, "the queue ran dry"
        runner.report(claim, "PROCESSING")
        self._runner, self._claim, self._next_seq = runner, claim, claim["next_log_seq"]
        self._batches = [_encoded_lines(seed) for seed in range(DIFFERENT_BATCHES)]

    def send(self, count: int) -> None:
        path = f"/api/jobs/{self._claim['job_id']}/logs"
        for _ in range(count):
            head = f'{{"claim_id":"{self._claim["claim_id"]}","first_seq":{self._next_seq},"lines":'
            body = head.encode() + self._batches[self._next_seq // BATCH_LINES % DIFFERENT_BATCHES] + b"}"
            self._next_seq = self._runner.send("POST", path, body)["next_seq"]


def _encoded_lines(seed: int) -> bytes:
    """A batch that looks like an apply: the same kinds of words, and an id that is never the same."""
    chance = random.Random(seed)
    lines = []
    for number in range(BATCH_LINES):
        text = (
            f"module.network[{number}].aws_subnet.private: Still creating... [{chance.getrandbits(256):064x}]"
        )
        line = {
            "at": f"2026-11-01T12:00:00.{number:06}Z",
            "level": "info",
            "message": text.ljust(LINE_BYTES, "."),
        }
        lines.append(line)
    return json.dumps(lines).encode()


def _together(workers: list[Any], work: Callable[[Any], object]) -> float:
    """Let all work at once, in a thread each; how long that took."""
    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def _questions(line: Connection) -> Iterator[Any]:
    """Yield the benchmark's questions until it hangs up."""
    while True:
        try:
            yield line.recv()
        except EOFError:
            return
