"""Runs one Terraform command: its own process group, its output line by line, its orderly end.

The output goes through an unnamed file and not through a pipe. Go programs die of SIGPIPE when the reader
of their standard output is gone, so a killed runner would take Terraform down before its state is saved;
and a slow reader never holds up an apply.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from runner import clock
from runner.stopping import Stop

#: How often new output is looked for: well below the 100 ms within which a batch is sent.
_LOOK_SECONDS = 0.02
_READ_BYTES = 256 * 1024
#: Terraform's longest JSON lines are outputs. What is longer is cut, and no longer read as JSON.
MAX_RAW_LINE_BYTES = 8 * 1024 * 1024

OnLines = Callable[[list[str]], None]
#: Called while the command runs; says whether there is more to do at once.
OnLook = Callable[[], bool]
#: Called before each SIGINT.
OnInterrupt = Callable[[], None]


class LineSplitter:
    """Cuts a stream of bytes into lines, however the chunks fall; what exceeds the limit is dropped."""

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
        lines = [self._ended()]
        whole, newline, rest = others.rpartition(b"\n")
        if newline:
            lines += self._whole(whole)
        self._keep(rest)
        self._on_lines(lines)

    def end(self) -> None:
        if self._rest or self._dropped:
            self._on_lines([self._ended()])

    def _whole(self, chunk: bytes) -> list[str]:
        """The lines of a chunk that begins and ends with one."""
        if len(chunk) <= self._limit:
            return _text(chunk + b"\n").split("\n")[:-1]
        lines = []
        for line in chunk.split(b"\n"):
            self._keep(line)
            lines.append(self._ended())
        return lines

    def _keep(self, part: bytes) -> None:
        room = self._limit - len(self._rest)
        self._rest += part[:room]
        self._dropped += max(0, len(part) - room)

    def _ended(self) -> str:
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
    on_interrupt: OnInterrupt,
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
            on_look=reader.pass_on,
            stop=stop,
            on_interrupt=on_interrupt,
        )
        while reader.pass_on():
            pass
    splitter.end()
    return code


class _Reader:
    """Reads what was appended since the last look; the file's own position belongs to the writer."""

    def __init__(self, descriptor: int, splitter: LineSplitter) -> None:
        self._descriptor = descriptor
        self._splitter = splitter
        self._position = 0

    def pass_on(self) -> bool:
        """Take one chunk, so that whoever prints without a pause can be stopped; says if there was one."""
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
    on_interrupt: OnInterrupt,
) -> int:
    """Run a command whose standard output is a document, into a private file."""
    with _private(stdout) as out, _private(stderr) as err:
        return _supervise(
            command,
            cwd=cwd,
            env=env,
            stdout=out,
            stderr=err,
            on_look=lambda: False,
            stop=stop,
            on_interrupt=on_interrupt,
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
    on_look: OnLook,
    stop: Stop,
    on_interrupt: OnInterrupt,
) -> int:
    process = subprocess.Popen(
        list(command),
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        umask=0o077,
    )
    ending = _Ending(process.pid, stop, on_interrupt)
    failure: Exception | None = None
    has_more = False
    with _exit_of(process) as has_ended:
        while not has_ended(0 if has_more else _LOOK_SECONDS):
            try:
                has_more = failure is None and on_look()
            except Exception as error:
                # Whatever is wrong with reading, an apply under way is not cut off for it.
                failure, has_more = error, False
            ending.press()
    # What Terraform left behind in its group (a provisioner's background process) ends with it.
    _signal_group(process.pid, signal.SIGKILL)
    code = process.wait()
    if failure:
        raise failure
    return code


@contextlib.contextmanager
def _exit_of(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """A wait that ends the moment the process does."""
    descriptor = os.pidfd_open(process.pid)
    try:
        yield lambda seconds: bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


class _Ending:
    """SIGINT, a grace period, SIGINT again, SIGKILL: to the whole group, as a terminal's Ctrl-C would."""

    def __init__(self, group: int, stop: Stop, on_interrupt: OnInterrupt) -> None:
        self._group = group
        self._stop = stop
        self._on_interrupt = on_interrupt
        self._interrupts = 0

    def press(self) -> None:
        if not self._stop.requested():
            return
        moment = clock.now()
        if moment >= self._stop.kill_at:
            _signal_group(self._group, signal.SIGKILL)
        elif self._interrupts == 0 or (self._interrupts == 1 and moment >= self._stop.interrupt_again_at):
            self._interrupts += 1
            self._on_interrupt()
            _signal_group(self._group, signal.SIGINT)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
