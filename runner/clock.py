"""The runner's two clocks: one that only measures durations, and one for people to read."""

from __future__ import annotations

import functools
import time
from datetime import UTC, datetime


def now() -> float:
    """Seconds that also pass while the machine is suspended, as the console's lease does.

    The same for every process of the machine, so that the watchdog can be told absolute times.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def timestamp() -> str:
    """The present as RFC 3339 UTC."""
    return _spelled(time.time_ns() // 1_000_000)


@functools.lru_cache(maxsize=1)
def _spelled(milliseconds: int) -> str:
    """Lines of a burst share their millisecond, and spelling it out takes longer than the rest of a line."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
