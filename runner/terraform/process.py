"""Runs one command of a job: on a leash, in its own process group, its output line by line, its orderly end.

The output goes through an unnamed file and not through a pipe. Go programs die of SIGPIPE when the reader
of their standard output is gone, so a killed runner would take Terraform down before its state is saved;
and a slow reader never holds up an apply.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from runner import clock
from runner.stopping import Stop

#: The interval of reads of new output: well below the 100 ms within which a batch is sent.
_POLL_SECONDS = 0.02
_READ_BYTES = 256 * 1024
#: Terraform's longest JSON lines are outputs. What is longer is cut, and no longer read as JSON.
MAX_RAW_LINE_BYTES = 8 * 1024 * 1024

OnLines = Callable[[list[str]], None]
#: Called while the command runs; returns whether there is more to do at once.
OnPoll = Callable[[], bool]

#: Imported and not run by its path, so that it is compiled once: every command waits for its start.
_LEASH = (
    f"import sys; sys.path.append({str(Path(__file__).parents[2])!r}); "
    "from runner.terraform.leash import main; main()"
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Leash:
    """The leash of a command: what its process inherits, and who is informed."""

    #: Descriptors for the process in `leash`, beside its report.
    descriptors: Sequence[int]
    #: Numbers of `resource` and their values.
    limits: Mapping[int, int]
    #: Called before each SIGINT.
    on_interrupt: Callable[[], None]
    #: Whether a process of the attempt still runs.
    is_alive: Callable[[int], bool]


class LineSplitter:
    """Splits a stream of bytes into lines, however the chunks fall; bytes beyond the limit are dropped."""

    def __init__(self, on_lines: OnLines, *, limit: int = MAX_RAW_LINE_BYTES) -> None:
        self._on_lines = on_lines
        self._limit = limit
        self._rest = bytearray()
        self._dropped = 0

    def feed(self, chunk: bytes) -> None:
        """Pass on the lines that end in this chunk, all at once: most of what a line costs is the call."""
        first, newline, others = chunk.partition(b"\n")
        self._keep(first)
        if not newline:
            return
        lines = [self._take_line()]
        whole, newline, rest = others.rpartition(b"\n")
        if newline:
            lines += self._whole(whole)
        self._keep(rest)
        self._on_lines(lines)

    def end(self) -> None:
        if self._rest or self._dropped:
            self._on_lines([self._take_line()])

    def _whole(self, chunk: bytes) -> list[str]:
        """Return the lines of a chunk that begins and ends with whole ones."""
        if len(chunk) <= self._limit:
            return _text(chunk + b"\n").split("\n")[:-1]
        lines = []
        for line in chunk.split(b"\n"):
            self._keep(line)
            lines.append(self._take_line())
        return lines

    def _keep(self, part: bytes) -> None:
        space = self._limit - len(self._rest)
        self._rest += part[:space]
        self._dropped += max(0, len(part) - space)

    def _take_line(self) -> str:
        text = _text(self._rest + b"\n")[:-1]
        if self._dropped:
            text += f" … ({self._dropped} more bytes)"
        self._rest.clear()
        self._dropped = 0
        return text


def _text(lines: bytes | bytearray) -> str:
    return lines.decode("utf-8", "replace").replace("\r\n", "\n")


def stream(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stop: Stop,
    scratch: Path,
    on_lines: OnLines,
    leash: Leash,
) -> int:
    """Run a command and pass on what it prints, in order; returns its exit code (negative: a signal)."""
    splitter = LineSplitter(on_lines)
    with tempfile.TemporaryFile(dir=scratch) as output:
        # Standard output and error share the file; appending keeps their order and their lines whole.
        fcntl.fcntl(output, fcntl.F_SETFL, os.O_APPEND)
        reader = _Reader(output.fileno(), splitter)
        code = _supervise(
            command,
            cwd=cwd,
            env=env,
            stdout=output,
            stderr=output,
            on_poll=reader.pass_on,
            stop=stop,
            leash=leash,
        )
        while reader.pass_on():
            pass
    splitter.end()
    return code


class _Reader:
    """Reads what was appended since the last read; the file's own position belongs to the writer."""

    def __init__(self, descriptor: int, splitter: LineSplitter) -> None:
        self._descriptor = descriptor
        self._splitter = splitter
        self._position = 0

    def pass_on(self) -> bool:
        """Read one chunk, so that a command that never pauses can be stopped; returns False at the end."""
        chunk = os.pread(self._descriptor, _READ_BYTES, self._position)
        self._position += len(chunk)
        self._splitter.feed(chunk)
        return bool(chunk)


def capture(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stop: Stop,
    stdout: Path,
    stderr: Path,
    leash: Leash,
) -> int:
    """Run a command whose standard output is a document, into a private file."""
    with _private(stdout) as out, _private(stderr) as err:
        return _supervise(
            command,
            cwd=cwd,
            env=env,
            stdout=out,
            stderr=err,
            on_poll=lambda: False,
            stop=stop,
            leash=leash,
        )


def _private(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb")


def _supervise(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdout: IO[bytes],
    stderr: IO[bytes],
    on_poll: OnPoll,
    stop: Stop,
    leash: Leash,
) -> int:
    report = os.memfd_create("report")
    try:
        process = _start(command, leash, report, cwd=cwd, env=env, stdout=stdout, stderr=stderr)
        ending = _Ending(process.pid, stop, leash.on_interrupt)
        failure = _wait_for_end(process, on_poll, ending)
        facts = _read_report(report)
        if "ended" not in facts and "started" in facts:
            ending.outlive_leash(lambda: leash.is_alive(facts["started"]))
        # Processes that Terraform left behind in its group (in the background of a provisioner) end with it.
        _signal_group(process.pid, signal.SIGKILL)
        code = process.wait()
    finally:
        os.close(report)
    if failure:
        raise failure
    if "refused" in facts:
        raise OSError(facts["refused"], os.strerror(facts["refused"]))
    return facts.get("ended", code)


def _wait_for_end(process: subprocess.Popen[bytes], on_poll: OnPoll, ending: _Ending) -> Exception | None:
    """Wait until the process ends: an error in reading does not cut off an apply under way."""
    failure: Exception | None = None
    has_more = False
    with _exit_of(process) as has_ended:
        while not has_ended(0 if has_more else _POLL_SECONDS):
            try:
                has_more = failure is None and on_poll()
            except Exception as error:
                failure, has_more = error, False
            ending.escalate()
    return failure


def _read_report(report: int) -> dict[str, int]:
    """Read the leash's report: the process that it `started`, how that `ended`, or why it was `refused`."""
    lines = os.pread(report, 1024, 0).decode().splitlines()
    return {what: int(number) for what, number in map(str.split, lines)}


def _start(
    command: Sequence[str],
    leash: Leash,
    report: int,
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdout: IO[bytes],
    stderr: IO[bytes],
) -> subprocess.Popen[bytes]:
    descriptors = [report, *leash.descriptors]
    limits = ",".join(f"{number}={value}" for number, value in leash.limits.items())
    with _block_interrupts():
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LEASH, ",".join(map(str, descriptors)), limits, *command],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            umask=0o077,
            pass_fds=descriptors,
        )


@contextlib.contextmanager
def _block_interrupts() -> Iterator[None]:
    """Start processes with SIGINT blocked: the leash keeps an early one for its program."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _exit_of(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """Return a wait that ends the moment the process does."""
    descriptor = os.pidfd_open(process.pid)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    try:
        yield lambda seconds: bool(poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)


class _Ending:
    """SIGINT, a grace period, SIGINT again, SIGKILL: to the whole group, as a terminal's Ctrl-C would."""

    def __init__(self, group: int, stop: Stop, on_interrupt: Callable[[], None]) -> None:
        self._group = group
        self._stop = stop
        self._on_interrupt = on_interrupt
        self._interrupts = 0

    def escalate(self) -> None:
        if not self._stop.requested():
            return
        moment = clock.now()
        if moment >= self._stop.kill_at:
            _signal_group(self._group, signal.SIGKILL)
        elif self._interrupts == 0 or (self._interrupts == 1 and moment >= self._stop.interrupt_again_at):
            self._interrupts += 1
            self._on_interrupt()
            _signal_group(self._group, signal.SIGINT)

    def outlive_leash(self, is_alive: Callable[[], bool]) -> None:
        """Wait for a program whose leash was killed: the kernel interrupted it, and it saves its state."""
        self._interrupts = max(self._interrupts, 1)
        self._on_interrupt()
        while is_alive():
            time.sleep(_POLL_SECONDS)
            self.escalate()


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
