"""`slipway doctor`: check everything that Slipway needs on this machine, and name the remedies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

import psycopg

from console.local.data_directory import DataDirectory, check_data_directory, data_directory_path
from console.local.embedded_postgres import installed_programs
from console.local.installation import require_database
from console.local.refusal import Refused
from console.local.up import free_address
from runner import __version__
from runner.terraform.binary import TerraformMissing, find_terraform

#: A fresh database takes 50 MB; below this, a busy day fills the disk.
SCARCE_DISK_BYTES = 2 * 1024**3
TOO_LITTLE_DISK_BYTES = 256 * 1024**2

# Sign-in tokens and certificates begin to fail about here. Leases do not care: the database's clock decides.
TOLERATED_SKEW_SECONDS = 30

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    level: Level
    subject: str
    text: str

    @property
    def is_failure(self) -> bool:
        return self.level == Level.FAIL

    def __str__(self) -> str:
        return f"{self.level:<5} {self.subject:<11} {self.text}"


@dataclass(frozen=True)
class Question:
    """The options of the `slipway up` to check."""

    host: str
    port: int
    root: Path
    database_url: str | None


def examine(*, host: str, port: int, data_dir: str | None) -> list[Finding]:
    question = Question(
        host=host,
        port=port,
        root=data_directory_path(data_dir, os.environ),
        database_url=os.environ.get("DATABASE_URL") or None,
    )
    return [finding for check in CHECKS for finding in _ask(check, question)]


def _ask(check: Callable[[Question], Iterator[Finding]], question: Question) -> Iterator[Finding]:
    subject = check.__name__.removeprefix("check_").replace("_", " ")
    try:
        yield from check(question)
    except (Refused, TerraformMissing) as refusal:
        yield Finding(Level.FAIL, subject, str(refusal))
    except OSError as error:
        yield Finding(Level.FAIL, subject, f"could not be checked:  {error}")


# --- The checks: each is named for its subject ----------------------------------------------------


def check_python(_: Question) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    if (3, 11) <= sys.version_info < (3, 14):
        yield Finding(Level.OK, "python", f"{version}, Slipway {__version__}")
    else:
        yield Finding(Level.FAIL, "python", f"{version} is not supported. Install Python 3.11, 3.12 or 3.13.")


def check_database(question: Question) -> Iterator[Finding]:
    if question.database_url is not None:
        require_database(question.database_url)
        with psycopg.connect(question.database_url, connect_timeout=5) as connection:
            version = connection.info.parameter_status("server_version")
        yield Finding(Level.OK, "database", f"PostgreSQL {version} of DATABASE_URL")
        return
    postgres = installed_programs() / "postgres"
    answer = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=False)
    if answer.returncode == 0:
        yield Finding(Level.OK, "database", f"embedded {answer.stdout.strip()}")
    else:
        reason = (answer.stderr.strip() or "no output").splitlines()[-1]
        yield Finding(
            Level.FAIL,
            "database",
            f"{postgres} does not run here: {reason}. Install the missing library, or set DATABASE_URL.",
        )


def check_data(question: Question) -> Iterator[Finding]:
    root = question.root
    try:
        check_data_directory(root)
    except PermissionError:
        raise Refused(
            f"{root} is not writable for you. Change its owner, or choose another --data-dir."
        ) from None
    if root.exists():
        yield Finding(Level.OK, "data", str(root))
        return
    parent = _nearest_existing(root)
    if not os.access(parent, os.W_OK):
        raise Refused(
            f"{root} cannot be created: {parent} is not writable for you. Choose another --data-dir."
        )
    yield Finding(Level.OK, "data", f"{root} (created at the first start)")


def check_disk(question: Question) -> Iterator[Finding]:
    place = _nearest_existing(question.root)
    free = shutil.disk_usage(place).free
    text = f"{free / 1024**3:.1f} GB free at {place}"
    if free < TOO_LITTLE_DISK_BYTES:
        yield Finding(Level.FAIL, "disk", f"{text}. Make room, or choose another --data-dir.")
    elif free < SCARCE_DISK_BYTES:
        yield Finding(Level.WARN, "disk", f"{text}. Logs and plans will soon need more.")
    else:
        yield Finding(Level.OK, "disk", text)


def check_port(question: Question) -> Iterator[Finding]:
    if DataDirectory(question.root).is_held():
        yield Finding(Level.OK, "port", "Slipway is running on this data directory")
        return
    address = free_address(question.host, question.port)
    yield Finding(Level.OK, "port", f"{address.port} of {address.host} is free")


def check_terraform(_: Question) -> Iterator[Finding]:
    binary = find_terraform()
    yield Finding(
        Level.OK, "terraform", f"{binary.flavour} {binary.version}, {binary.path} (from {binary.origin})"
    )


def check_clock(question: Question) -> Iterator[Finding]:
    newest_file = Path(__file__).stat().st_mtime
    if time.time() < newest_file - TOLERATED_SKEW_SECONDS:
        yield Finding(Level.WARN, "clock", "earlier than Slipway's own files. Set the clock, such as by NTP.")
        return
    skew = _skew_to(question.database_url)
    if skew > TOLERATED_SKEW_SECONDS:
        yield Finding(Level.WARN, "clock", f"{skew:.0f} s away from the database's. Set both clocks by NTP.")
    else:
        yield Finding(Level.OK, "clock", "plausible")


def check_browser(_: Question) -> Iterator[Finding]:
    """Check for a browser if Playwright is installed: only developers need one."""
    if find_spec("playwright") is None:
        return
    browser = find_chromium()
    if browser is None:
        yield Finding(Level.WARN, "browser", "no Chromium for the browser tests. `make test` installs one.")
    else:
        yield Finding(Level.OK, "browser", str(browser))


CHECKS: tuple[Callable[[Question], Iterator[Finding]], ...] = (
    check_python,
    check_database,
    check_data,
    check_disk,
    check_port,
    check_terraform,
    check_clock,
    check_browser,
)


def find_chromium() -> Path | None:
    """Return a Chromium of the machine, or the one that Playwright has downloaded."""
    for name in BROWSERS:
        if path := shutil.which(name):
            return Path(path)
    store = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright"
    return max(Path(store).glob("chromium-*/chrome-linux*/chrome"), default=None)


def _nearest_existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _skew_to(database_url: str | None) -> float:
    """Return the clock skew to an external database; the embedded one shares this machine's clock."""
    if database_url is None:
        return 0.0
    try:
        with psycopg.connect(database_url, connect_timeout=5) as connection:
            row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    except psycopg.Error:
        return 0.0  # check_database reports it.
    return abs(row[0] - time.time()) if row else 0.0
