"""The refusal of Slipway's own commands: one line with the problem and the remedy."""

from __future__ import annotations


class Refused(Exception):
    """Slipway cannot do this now. The text is one line for a person, with the remedy."""
