"""The runner's two clocks: one that only measures durations, and one for people to read."""

from __future__ import annotations

import functools
import time
from datetime import UTC, datetime


def now() -> float:
    """Return seconds that also pass while the machine is suspended, as the console's lease does.

    Every process of the machine has the same clock, so that the watchdog can use absolute times.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def timestamp() -> str:
    """Return the present time as RFC 3339 UTC."""
    return _format(time.time_ns() // 1_000_000)


@functools.lru_cache(maxsize=1)
def _format(milliseconds: int) -> str:
    """Format a time, cached: lines of a burst share it, and this is the dearest part of a line."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
