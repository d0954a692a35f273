"""The browser of the journeys: finds a Chromium, or installs one. `make test` runs this as a program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from console.local.doctor import find_chromium


def chromium() -> Path:
    """The browser for a journey. `make test` has made sure that there is one."""
    found = find_chromium()
    assert found is not None, "No Chromium found. Run `make test`, or: .venv/bin/python -m tests.chromium"
    return found


def install_chromium() -> bool:
    """Playwright's own, which needs no root; else Debian's package, which brings its libraries along."""
    return _install_playwrights() or _install_debians()


def _install_playwrights() -> bool:
    _say("installing Playwright's Chromium")
    if not _succeeds([sys.executable, "-m", "playwright", "install", "chromium"]):
        return False
    found = find_chromium()
    # A bare machine lacks the libraries that a browser needs: what counts is that it starts.
    return found is not None and _succeeds([str(found), "--headless", "--no-sandbox", "--version"])


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
