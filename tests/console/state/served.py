"""The console as it is deployed: a process of its own, on the suite's database."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import httpx
from django.db import connection

from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]
START_SECONDS = 60
STOP_SECONDS = 20


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def database_url() -> str:
    """Of the database that this test process uses."""
    database = connection.settings_dict
    login = f"{quote(str(database['USER']), safe='')}:{quote(str(database['PASSWORD']), safe='')}"
    place = urlencode({"host": str(database["HOST"])})
    return f"postgresql://{login}@/{database['NAME']}?{place}"


@dataclass(frozen=True)
class Served:
    """A console that answers."""

    address: str
    pid: int

    @property
    def peak_bytes(self) -> int:
        """The most memory that it ever had."""
        match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        assert match is not None
        return int(match[1]) * 1024


@contextmanager
def served_console(log: Path, **environ: str) -> Iterator[Served]:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    own = {
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "SLIPWAY_PUBLIC_URL": address,
        "SLIPWAY_INSECURE_COOKIES": "1",
    }
    command = [sys.executable, "-P", "-m", "console.local.serve", "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | own | environ,
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(lambda: _answers(process, address, log), seconds=START_SECONDS, what="the console")
        yield Served(address, process.pid)
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)
    assert "Traceback" not in log.read_text(), log.read_text()


def _answers(process: subprocess.Popen[bytes], address: str, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        return httpx.get(f"{address}/healthz").is_success
    except httpx.TransportError:
        return False
