"""The leash: a small process between the runner and each program that a job runs.

The kernel interrupts the program when its leash dies (a parent-death signal), so that even when every process
around Terraform is killed, Terraform saves its state and ends. The leash itself survives the runner and the
watchdog; when both are gone, or when neither has ended the program by the end of the lease, it starts another
watchdog, which does.

It is in the program's process group, so that it sees what the program is sent and ends with it. It needs few
modules of the standard library only: every command of a job waits for its start.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
#: Signals that Python, or the leash itself, handles in another way than the program.
_CHANGED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)
#: The runner and the watchdog kill when the lease demands it; the leash checks a moment later.
_LATER_SECONDS = 0.2
#: Before another watchdog follows one that ended too early.
_PAUSE_SECONDS = 1.0


class _Leash:
    """Holds one program. `watched` is a pipe that closes when neither the runner nor the watchdog is there.

    `attempt` is a file with the messages for another watchdog.
    """

    def __init__(self, *, watched: int, attempt: int, inherited: list[int]) -> None:
        self._watched = watched
        self._attempt = attempt
        self._inherited = inherited
        self._watchdog: int | None = None
        self._was_interrupted = False
        signal.signal(signal.SIGINT, self._on_interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def hold(self, program: int) -> int:
        """Return the program's exit code (negative: a signal), once it has ended."""
        ended = os.pidfd_open(program)
        while not _is_ready([ended], 0):
            if self._is_orphaned(ended):
                self._start_watchdog()
        return os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])

    def _is_orphaned(self, ended: int) -> bool:
        """Wait until the program ends or nobody watches it; returns whether it is the latter."""
        _is_ready([ended, self._watched], self._seconds_left())
        if _is_ready([ended], _PAUSE_SECONDS if self._watchdog else 0):
            return False
        return _is_ready([self._watched], 0) or self._seconds_left() == 0

    def _on_interrupt(self, *_: object) -> None:
        """Remember that the whole group was interrupted."""
        self._was_interrupted = True

    def _seconds_left(self) -> float | None:
        """Return the time until the kill is due; None with a watchdog of the leash's own, which does it."""
        if self._watchdog:
            return None
        return max(0.0, self._read_attempt()[0] + _LATER_SECONDS - time.clock_gettime(time.CLOCK_BOOTTIME))

    def _read_attempt(self) -> tuple[float, bytes, bytes]:
        """Return the time of the kill, and the messages for a watchdog: the attempt, and its interruption."""
        read = b""
        while read != (read := os.pread(self._attempt, 65536, 0)):
            pass  # Until two reads are equal: the runner may be writing.
        kill_at, attempt, interrupted = read.split(b"\n")[:3]
        return float(kill_at), attempt, interrupted

    def _start_watchdog(self) -> None:
        """Start it with a pipe that holds the messages and is closed, as that of a dead runner."""
        _, attempt, interrupted = self._read_attempt()
        reading, writing = os.pipe()
        messages = [attempt, interrupted] if self._was_interrupted else [attempt]
        os.write(writing, b"".join(message + b"\n" for message in messages))
        os.close(writing)
        if self._watchdog:
            os.waitpid(self._watchdog, 0)
        self._watchdog = os.fork()
        if self._watchdog == 0:
            _become_watchdog(reading, self._inherited)
        os.close(reading)
        os.close(self._watched)
        self._watched = os.pidfd_open(self._watchdog)


def _is_ready(descriptors: list[int], seconds: float | None) -> bool:
    """Return whether one of them can be read, or has ended, within that time."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def _become_watchdog(reading: int, inherited: list[int]) -> None:
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for source, target in ((reading, 0), (nowhere, 1), (nowhere, 2)):
            os.dup2(source, target)
        for descriptor in inherited:
            os.set_inheritable(descriptor, True)
        watchdog = os.path.join(os.path.dirname(__file__), "watchdog.py")  # noqa: PTH118, PTH120 - pathlib is slow
        os.execve(sys.executable, [sys.executable, "-I", "-S", watchdog], {})  # noqa: S606
    finally:
        os._exit(1)


def _start(command: list[str], *, limits: str, report: int) -> int:
    """Return the program's process. SIGINT is blocked here and there, so that it gets an early one once."""
    parent = os.getpid()
    may_go, go = os.pipe()
    program = os.fork()
    if program == 0:
        try:
            os.close(go)
            os.read(may_go, 1)
            _set_limits(limits)
            _become(command, parent=parent)
        except (OSError, ValueError) as error:
            os.write(report, b"refused %d\n" % (getattr(error, "errno", None) or errno.EINVAL))
        finally:
            os._exit(1)
    if (
        signal.SIGINT in signal.sigpending()
    ):  # It may be older than the program, for which a second one makes no difference.
        os.kill(program, signal.SIGINT)
    os.close(go)
    return program


def _set_limits(limits: str) -> None:
    for limit in filter(None, limits.split(",")):
        number, value = map(int, limit.split("="))
        resource.setrlimit(number, (value, value))


def _become(command: list[str], *, parent: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT.value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:  # It died before the kernel was asked.
        return
    for number in _CHANGED_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.execv(command[0], command)  # noqa: S606


def main() -> None:
    """Hold a command. Arguments: descriptors (report, watched, attempt, inherited), limits, the command."""
    report, watched, attempt, *inherited = map(int, sys.argv[1].split(","))
    for descriptor in (report, watched, attempt, *inherited):
        os.set_inheritable(descriptor, False)
    leash = _Leash(watched=watched, attempt=attempt, inherited=inherited)
    program = _start(sys.argv[3:], limits=sys.argv[2], report=report)
    os.write(report, b"started %d\n" % program)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.write(report, b"ended %d\n" % leash.hold(program))
    os._exit(0)  # Python's own ending takes as long as a short command.
