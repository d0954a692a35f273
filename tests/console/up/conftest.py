"""Servers and commands for the tests of `slipway up`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from console.local.embedded_postgres import EmbeddedPostgres
from tests.process_table import command_line, descendants, has_ended
from tests.throwaway_postgres import reachable_directory
from tests.waiting import wait_until

PASSWORD = "a password with /?&=% in it"
#: The command line of this tree.
SLIPWAY = (sys.executable, "-m", "slipway")


def without_database(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name != "DATABASE_URL"}


@pytest.fixture(scope="session")
def made_once() -> Iterator[Path]:
    """The files of a server that was made and stopped: copying them is quicker than making them."""
    folder = reachable_directory("slipway-")
    with EmbeddedPostgres(folder / "postgres", PASSWORD, durable=False):
        pass
    yield folder / "postgres"
    shutil.rmtree(folder)


@pytest.fixture
def postgres(made_once: Path, reachable_tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """A server of the test's own, not yet started."""
    subprocess.run(["cp", "--archive", made_once, reachable_tmp_path / "postgres"], check=True)
    server = EmbeddedPostgres(reachable_tmp_path / "postgres", PASSWORD, durable=False)
    yield server
    server.stop()


Slipway = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def slipway(reachable_tmp_path: Path) -> Slipway:
    """Run the command line as a person would, in an environment without a database."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        data = {"SLIPWAY_DATA_DIR": str(reachable_tmp_path / "data")}
        return subprocess.run(
            [*SLIPWAY, *arguments],
            env=without_database(os.environ) | data | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


class RunningUp:
    """One `slipway up` as a person starts it; its terminal is a pipe."""

    def __init__(
        self,
        root: Path,
        *,
        program: Sequence[str] = SLIPWAY,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.root = root
        self.process = subprocess.Popen(
            [*program, "up", "--port=0", f"--data-dir={root}"],
            env=without_database(os.environ) if environment is None else environment,
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.printed = ""

    def wait_for(self, text: str) -> str:
        """Read on until a line has `text`; return everything that was printed up to it."""
        assert self.process.stdout is not None
        while text not in self.printed:
            line = self.process.stdout.readline()
            assert line, f"it ended without saying {text!r}: {self.printed}"
            self.printed += line
        return self.printed

    def wait_for_end(self) -> int:
        output, _ = self.process.communicate(timeout=60)
        self.printed += output
        return self.process.returncode

    @property
    def url(self) -> str:
        return next(word for word in self.printed.split() if word.startswith("http://"))

    @property
    def password(self) -> str:
        line = next(line for line in self.printed.splitlines() if "Sign in" in line)
        return line.split()[-1]

    def processes(self) -> list[int]:
        """Everything that was started, directly or not."""
        return descendants(self.process.pid)

    def child(self, words: str) -> int | None:
        """The child whose command line begins with a program and then has `words`."""
        return next((pid for pid in self.processes() if words in command_line(pid)), None)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def wait_for_all_to_end(pids: list[int]) -> None:
    wait_until(lambda: all(map(has_ended, pids)), seconds=30, what="the end of all processes")


@pytest.fixture(scope="module")
def kept_data() -> Iterator[Path]:
    """One data directory for the tests of a file: only the first start makes a database."""
    folder = reachable_directory("slipway-")
    yield folder / "data"
    shutil.rmtree(folder)


@pytest.fixture
def start_up(kept_data: Path) -> Iterator[Callable[[], RunningUp]]:
    """Start `slipway up`, as often as wanted."""
    running: list[RunningUp] = []

    def start() -> RunningUp:
        running.append(RunningUp(kept_data))
        running[-1].wait_for("Ctrl-C stops everything")
        return running[-1]

    yield start
    for up in running:
        leftover = up.processes()
        up.end()
        wait_for_all_to_end(leftover)
