"""The console's programs as processes of their own: the server, the janitor, the runner."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import httpx
import pytest
from django.db import connection

from tests.waiting import wait_until

ROOT = Path(__file__).parents[1]

Started = TypeVar("Started", bound="Process")


def database_url() -> str:
    """The address of the database that this test process uses, for other processes."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    name = quote(str(connection.settings_dict["NAME"]), safe="")
    return urlunsplit(parts._replace(path=f"/{name}"))


class Process:
    """One program, its output in a file, ended with the test."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str]) -> None:
        self._command, self._log, self._environment = command, log, environment
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        with self._log.open("ab") as output:
            self.process = subprocess.Popen(
                self._command, cwd=ROOT, env=os.environ | self._environment, stdout=output, stderr=output
            )
        return self

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """End the process as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


class Server(Process):
    """A console that listens on a port of its own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.url = f"http://127.0.0.1:{_free_port()}"
        super().__init__(
            [sys.executable, "-P", "-m", "console.local.serve", "--port", self.url.rpartition(":")[2]],
            folder / "console.log",
            {"SLIPWAY_PUBLIC_URL": self.url, "PYTHONPATH": str(ROOT), **environment},
        )

    def start(self) -> Self:
        super().start()
        wait_until(self._answers, what="the console's first answer")
        return self

    def _answers(self) -> bool:
        assert self.is_running, self.log
        try:
            return httpx.get(f"{self.url}/healthz", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False


class Janitor(Process):
    def __init__(self, folder: Path, name: str, environment: dict[str, str]) -> None:
        super().__init__(
            [sys.executable, "manage.py", "janitor"], folder / f"janitor-{name}.log", environment
        )

    @property
    def leads(self) -> bool:
        return "this janitor leads" in self.log

    def wait_for_lead(self) -> None:
        def leads() -> bool:
            assert self.is_running, self.log
            return self.leads

        wait_until(leads, what="a janitor that leads")


class Programs:
    """Starts programs on one database; all of them end with the test."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.folder = folder
        self.environment = {"DATABASE_URL": database_url}
        self._started: list[Process] = []

    def server(self, **environment: str) -> Server:
        return self._start(Server(self.folder, self.environment | environment))

    def janitor(self, name: str = "one", **environment: str) -> Janitor:
        return self._start(Janitor(self.folder, name, self.environment | environment))

    def end(self) -> None:
        for process in reversed(self._started):
            process.stop()

    def _start(self, process: Started) -> Started:
        self._started.append(process)
        process.start()
        return process


@pytest.fixture
def programs(transactional_db: None, tmp_path: Path) -> Iterator[Programs]:
    """Programs on the suite's own database."""
    programs = Programs(tmp_path, database_url())
    yield programs
    programs.end()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
