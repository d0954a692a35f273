"""Start a program that ends with its parent process, optionally under another account.

It runs as a script of its own, before the program: a hook between fork and exec is not safe in a process
with threads, and the kernel forgets the death signal when credentials change, so the order matters. Standard
library only, since it is started without site-packages.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1

#: A shell's exit code for a program that exists but cannot be run.
EXIT_CANNOT_RUN = 126


def bind_to_parent(
    command: Sequence[str | Path],
    *,
    death_signal: signal.Signals,
    uid: int | None = None,
    gid: int | None = None,
) -> list[str]:
    """Return the command line that starts `command` so that it gets `death_signal` when this process ends.

    The kernel counts the thread that starts it as the parent: start it from one that lives long enough.
    """
    line = [sys.executable, "-I", "-S", __file__, f"--parent={os.getpid()}", f"--signal={death_signal.value}"]
    if uid is not None and gid is not None:
        line += [f"--uid={uid}", f"--gid={gid}"]
    return [*line, "--", *map(str, command)]


def follow_parent(death_signal: int) -> None:
    """Ask the kernel to send `death_signal` to this process when its parent ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def main() -> None:
    options = _parse()
    if options.uid is not None:
        os.setgroups([options.gid])
        os.setgid(options.gid)
        os.setuid(options.uid)
    follow_parent(options.signal)
    if os.getppid() != options.parent:  # It ended before prctl.
        sys.exit(EXIT_CANNOT_RUN)
    # The starter may block signals to wait for them; a blocked SIGTERM would make the program unstoppable.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        os.execv(options.command[0], options.command)  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"cannot run {options.command[0]}: {error.strerror}\n")
        sys.exit(EXIT_CANNOT_RUN)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--signal", type=int, required=True)
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


if __name__ == "__main__":
    main()
