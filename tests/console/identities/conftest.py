"""Fixtures, which live in modules of their own."""

from tests.console.state.conftest import served

__all__ = ["served"]
