"""The browser of the journeys: finds a Chromium, or installs one. `make test` runs this as a program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from console.local.doctor import find_chromium


def chromium() -> Path:
    """Return the path of the browser, which `make test` installs."""
    path = find_chromium()
    assert path is not None, "No Chromium found. Run `make test`, or: .venv/bin/python -m tests.chromium"
    return path


def install_chromium() -> bool:
    """Install Playwright's Chromium, which needs no root, else Debian's package with its libraries."""
    return _install_playwrights() or _install_debians()


def _install_playwrights() -> bool:
    _say("installing Playwright's Chromium")
    if not _succeeds([sys.executable, "-m", "playwright", "install", "chromium"]):
        return False
    path = find_chromium()
    # A bare machine may lack the libraries that a browser needs, so the browser has to start.
    return path is not None and _succeeds([str(path), "--headless", "--no-sandbox", "--version"])


def _install_debians() -> bool:
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return False
    _say("installing Debian's Chromium")
    install = [apt, "install", "--yes", "--no-install-recommends", "chromium"]
    if not _succeeds(install):
        _succeeds([apt, "update"])
        _succeeds(install)
    return find_chromium() is not None


def _succeeds(command: list[str]) -> bool:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    answer = subprocess.run(command, env=environment, capture_output=True, check=False)
    return answer.returncode == 0


def _say(text: str) -> None:
    sys.stderr.write(f"slipway: {text}\n")


def main() -> int:
    if find_chromium() is not None or install_chromium():
        return 0
    _say("no Chromium could be installed for the browser tests. Install one: apt-get install chromium")
    return 2 if os.environ.get("CI") else 0


if __name__ == "__main__":
    sys.exit(main())
