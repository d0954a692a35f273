"""Durations as text for people."""

from datetime import timedelta


def duration(value: timedelta | float | None) -> str:
    """Return a duration in the same words as `duration` in relative-time.js."""
    if value is None:
        return ""
    seconds = max(0.0, value.total_seconds() if isinstance(value, timedelta) else float(value))
    if seconds < 0.005:
        return "< 0.01 s"
    if seconds < 0.995:
        return f"{seconds:.2f} s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{round(seconds)} s"
    minutes, remainder = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {remainder:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"
