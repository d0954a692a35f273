"""The one way in which Slipway's own commands say no: one line, what happened and what to do."""

from __future__ import annotations


class Refused(Exception):
    """Slipway cannot do this here and now. The text is one line for a person and names the remedy."""
