"""Fixtures, which live in modules of their own."""

from tests.console_app import background, console
from tests.people import ended_connections, ours, theirs, transactional_db

__all__ = ["background", "console", "ended_connections", "ours", "theirs", "transactional_db"]
