"""The clouds' own libraries, which come with extras of the install and are imported when a job needs them."""

from __future__ import annotations

import importlib
from typing import Any

from runner.outcome import StepFailed


def load(module: str, *, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise StepFailed(
            "extra_missing",
            f"This runner has no library for {_CLOUDS[extra]}. Install it where the runner is, with "
            f"pip install 'slipway[{extra}]', and start the runner again.",
        ) from error


_CLOUDS = {"aws": "AWS", "gcp": "Google Cloud", "azure": "Azure"}
