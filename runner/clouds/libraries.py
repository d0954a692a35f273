"""Imports a cloud's own library when a job needs it: such libraries come with extras of the install."""

from __future__ import annotations

import importlib
from typing import Any

from runner.outcome import StepFailed


def load_library(module: str, *, extra: str, cloud: str) -> Any:
    """Import a module of the extra that supports a cloud."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise StepFailed(
            "extra_missing",
            f"This runner has no library for {cloud}. Install it where the runner is, with "
            f"pip install 'slipway[{extra}]', and start the runner again.",
        ) from error
