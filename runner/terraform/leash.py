"""The leash: a small process between the runner and each program that a job runs.

The kernel interrupts the program when its leash dies (a parent-death signal), so that whoever kills every
process around Terraform has still told Terraform to save its state and end. The leash itself survives the
runner and the watchdog; when both are gone, or when neither has ended the program by the end of the lease, it
starts another watchdog, which does.

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
#: What Python, or the leash itself, has another use for than the program.
_CHANGED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)
#: The runner and the watchdog kill when the lease demands it; the leash looks a moment later if they did.
_LATER_SECONDS = 0.2
#: Before another watchdog follows one that ended too early.
_PAUSE_SECONDS = 1.0


class _Leash:
    """Holds one program. `watched` ends when neither the runner nor the watchdog is there.

    `ward` is the file with what a watchdog has to know.
    """

    def __init__(self, *, watched: int, ward: int, inherited: list[int]) -> None:
        self._watched = watched
        self._ward = ward
        self._inherited = inherited
        self._watchdog: int | None = None
        self._was_interrupted = False
        signal.signal(signal.SIGINT, self._on_interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def hold(self, program: int) -> int:
        """Returns the program's exit code (negative: a signal), once it has ended."""
        ended = os.pidfd_open(program)
        while not _is_ready([ended], 0):
            if self._is_forsaken(ended):
                self._start_watchdog()
        return os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])

    def _is_forsaken(self, ended: int) -> bool:
        """Wait until the program ends, or until nobody watches over it; says whether it is the latter."""
        _is_ready([ended, self._watched], self._seconds_left())
        if _is_ready([ended], _PAUSE_SECONDS if self._watchdog else 0):
            return False
        return _is_ready([self._watched], 0) or self._seconds_left() == 0

    def _on_interrupt(self, *_: object) -> None:
        """The whole group was interrupted."""
        self._was_interrupted = True

    def _seconds_left(self) -> float | None:
        """Until somebody should have killed; a watchdog of the leash's own needs no reminder."""
        if self._watchdog:
            return None
        return max(0.0, self._known()[0] + _LATER_SECONDS - time.clock_gettime(time.CLOCK_BOOTTIME))

    def _known(self) -> tuple[float, bytes, bytes]:
        """When to kill, and the messages for a watchdog: what to watch, and that it was interrupted."""
        read = b""
        while read != (read := os.pread(self._ward, 65536, 0)):
            pass  # Until it is the same twice: the runner may be writing.
        kill_at, ward, interrupted = read.split(b"\n")[:3]
        return float(kill_at), ward, interrupted

    def _start_watchdog(self) -> None:
        """Its pipe says what there is to know and ends at once: it takes over what a dead runner left."""
        _, ward, interrupted = self._known()
        reading, writing = os.pipe()
        messages = [ward, interrupted] if self._was_interrupted else [ward]
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
    """Whether one of them can be read, or has ended, within that time."""
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
    """Returns the program's process. SIGINT is blocked here and there, so that it gets an early one, once."""
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
    if signal.SIGINT in signal.sigpending():  # It may be older than the program; a second one is the same.
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
    """Hold a command. Arguments: descriptors (report, watched, ward, inherited), limits, the command."""
    report, watched, ward, *inherited = map(int, sys.argv[1].split(","))
    for descriptor in (report, watched, ward, *inherited):
        os.set_inheritable(descriptor, False)
    leash = _Leash(watched=watched, ward=ward, inherited=inherited)
    program = _start(sys.argv[3:], limits=sys.argv[2], report=report)
    os.write(report, b"started %d\n" % program)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.write(report, b"ended %d\n" % leash.hold(program))
    os._exit(0)  # Python's own ending takes as long as a short command.
