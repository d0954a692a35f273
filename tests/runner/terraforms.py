"""The Terraforms that the suite runs with: the machine's own, and the one of the package registry."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from runner.terraform.binary import find_terraform


@functools.cache
def terraform_on_path() -> str:
    """The one that tests use which are not about a version."""
    return find_terraform().path


def embedded_terraform() -> str:
    """`make test` installs it, whatever the machine has."""
    launcher = Path(sys.executable).with_name("slipway-terraform")
    assert launcher.exists(), "slipway-terraform is missing: run `make dev`."
    return str(launcher)


def all_terraforms() -> dict[str, str]:
    """Return the Terraforms by the names in tests: two versions, where the machine has its own."""
    return {"installed": terraform_on_path(), "embedded": embedded_terraform()}
