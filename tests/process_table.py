"""The machine's processes, read from /proc: a process that ends during a read counts as ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def children(pid: int) -> list[int]:
    """Return the child processes of all its threads."""
    return [int(child) for thread in _threads(pid) for child in _read(thread / "children").split()]


def descendants(pid: int) -> list[int]:
    """Return its child processes and theirs, recursively."""
    return [descendant for child in children(pid) for descendant in (child, *descendants(child))]


def command_line(pid: int) -> str:
    return _read(Path(f"/proc/{pid}/cmdline")).replace("\0", " ")


def environment_of(pid: int) -> str:
    return _read(Path(f"/proc/{pid}/environ"))


def has_ended(pid: int) -> bool:
    """Return true for a process that has ended, even before its parent reaps it."""
    stat = _read(Path(f"/proc/{pid}/stat"))
    return not stat or ") Z " in stat


def _threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
