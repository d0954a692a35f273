"""The product as a person starts it: `slipway up` in a directory of its own, stopped by Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import wait_until

#: Starting includes making a database; the figure is for a busy machine.
START_SECONDS = 90
STOP_SECONDS = 60

READY = "Ctrl-C stops everything"


class Product:
    """A running `slipway up`, known by what it prints."""

    def __init__(self, process: subprocess.Popen[bytes], printed_to: Path) -> None:
        self._process = process
        self._printed_to = printed_to

    @property
    def printed(self) -> str:
        return self._printed_to.read_text()

    @property
    def url(self) -> str:
        return self._word_after(r"Open\s+")

    @property
    def password(self) -> str:
        return self._word_after(r"Sign in\s+admin\s+")

    def wait_until_ready(self) -> None:
        def ready() -> bool:
            assert self._process.poll() is None, f"slipway up ended: {self.printed}"
            return READY in self.printed

        wait_until(ready, seconds=START_SECONDS, what="slipway up being ready")

    def press_ctrl_c(self) -> int:
        """Send SIGINT to the whole process group, as a terminal does, and return the exit code."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self._process.wait(timeout=STOP_SECONDS)

    def end(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait(timeout=STOP_SECONDS)

    def _word_after(self, words: str) -> str:
        match = re.search(words + r"(\S+)", self.printed)
        assert match, f"slipway up did not print it: {self.printed}"
        return match.group(1)


@contextmanager
def running_product(folder: Path, **environ: str) -> Iterator[Product]:
    """Everything on this machine, on a free port, with a new data directory in `folder`."""
    printed_to = folder / "printed.txt"
    command = [
        str(Path(sys.executable).with_name("slipway")),
        "up",
        "--port",
        "0",
        "--data-dir",
        str(folder / "data"),
    ]
    with printed_to.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=_environment() | environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # its own group, as a shell gives it
        )
    product = Product(process, printed_to)
    try:
        product.wait_until_ready()
        yield product
    finally:
        product.end()


def _environment() -> dict[str, str]:
    """Return the environment without the suite's own database and settings."""
    inherited = {"SLIPWAY_TERRAFORM"}
    own = ("SLIPWAY_", "DATABASE_URL", "DJANGO_", "PG", "PYTEST_")
    return {
        name: value for name, value in os.environ.items() if name in inherited or not name.startswith(own)
    }
