"""Counts how often the code of one request changes from one package to another.

`tests/console/test_rooms.py` holds the limit for a Plan click.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
#: What every package stands on: errors, ids, input checks, prepared statements.
FOUNDATION = "console"
#: Where a click enters.
ENTRY = "console/pages"


class Journey:
    """The files that a request enters, each once, in the order of their first function call."""

    def __init__(self) -> None:
        self.files: list[str] = []

    @contextmanager
    def recorded(self) -> Any:
        previous = sys.getprofile()
        sys.setprofile(self._enter)
        try:
            yield self
        finally:
            sys.setprofile(previous)

    @property
    def rooms(self) -> list[str]:
        """The package of each file; modules at the console's root count as none."""
        return [room for file in self.files if (room := room_of(file)) != FOUNDATION]

    @property
    def changes(self) -> int:
        rooms = self.rooms
        return sum(before != after for before, after in pairwise(rooms))

    def _enter(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or frame.f_code.co_name.startswith("<"):
            return
        file = file_of(frame)
        if not file or file in self.files:
            return
        # A reader gets from file to file by calls. What Django calls between, such as a middleware, is not on
        # that way: a file is, when a file on the way calls it.
        caller = file_of(frame.f_back) if frame.f_back else ""
        if caller in self.files or (not self.files and room_of(file) == ENTRY):
            self.files.append(file)


def file_of(frame: FrameType) -> str:
    """The file of a function of ours, from the project's root; empty for anybody else's."""
    path = frame.f_code.co_filename
    file = path[len(str(ROOT)) + 1 :] if path.startswith(f"{ROOT}/") else ""
    return file if file.startswith(("console/", "specs/", "runner/")) else ""


def room_of(file: str) -> str:
    parts = Path(file).parts
    return parts[0] if parts[0] != "console" or len(parts) == 2 else "/".join(parts[:2])


def journey_of(request: Callable[[], Any]) -> Journey:
    journey = Journey()
    with journey.recorded():
        request()
    return journey
