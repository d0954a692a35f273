"""The runner's files: its data directory, and the private working directory of each attempt."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from runner import clock
from runner.config import SettingsError
from runner.protocol import ERRORED_STATE, TERRAFORMS_FILES, TERRAFORMS_FOLDER
from runner.terraform.watchdog import groups_of, signal_groups

logger = logging.getLogger(__name__)

#: After a kill, the watchdog of the last runner may still be ending Terraform: as long as a lease at most.
_WAIT_FOR_WATCHDOG_SECONDS = 180.0

MAX_FILES = 10_000
MAX_CONFIGURATION_BYTES = 64 * 1024 * 1024
_MAX_PATH_CHARS = 512

_ATTEMPT_FILE = "attempt.json"
_NAME_CHARS = 12

#: Providers open a socket in TMPDIR, whose whole path has at most 107 bytes; this leaves space for its name.
_MAX_TEMPORARY_PATH_BYTES = 75


class UnsafeFile(Exception):
    """A configuration has a file that a runner must not write; the message says which and why."""


class DataDirectory:
    """The files that outlive attempts: the credential, the provider cache, states that could not be saved."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"
        self.plugin_cache = root / "plugin-cache"
        self.rescued = root / "rescued"
        self._runner_lock = -1
        self.attempts_lock = -1  # shared with the watchdog, which may outlive the runner

    def prepare(self) -> None:
        try:
            for directory in (self.root, self.work, self.plugin_cache, self.rescued):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.work.chmod(0o700)
        except OSError as error:
            raise SettingsError(
                f"The data directory {self.root} cannot be used: {error.strerror}. "
                "Make it writable for this user, or give another with --data-dir."
            ) from error

    def hold(self) -> None:
        """Lock the data directory for one runner, once the watchdog of an earlier one has ended."""
        self._runner_lock = _open_lock(self.root / "runner.lock")
        if not _try_lock(self._runner_lock):
            raise SettingsError(
                f"Another runner uses {self.root}. Stop it, or give this one its own with --data-dir; "
                "for more jobs side by side use --slots."
            )
        self.attempts_lock = _open_lock(self.root / "attempts.lock")
        if not _try_lock(self.attempts_lock):
            self._wait_for_watchdog()

    def _wait_for_watchdog(self) -> None:
        logger.info("Terraform of a killed runner is still being ended in %s; waiting for it.", self.root)
        deadline = clock.now() + _WAIT_FOR_WATCHDOG_SECONDS
        while not _try_lock(self.attempts_lock):
            if clock.now() > deadline:
                raise SettingsError(
                    f"Terraform of a killed runner is still at work in {self.root}: end it, then start again."
                )
            time.sleep(0.1)

    def workdir(self, marker: str) -> Workdir:
        """Return the working directory of an attempt. Its name is short: see the limit of socket paths."""
        return Workdir(self.work / marker[:_NAME_CHARS])

    def sweep(self, *, grace_seconds: float) -> None:
        """End and remove what a killed runner left behind, but no state that was not saved."""
        self._end_orphans(grace_seconds)
        for directory in self.work.iterdir():
            for errored in _errored_states(directory):
                rescued = self.rescue(errored, **_read_attempt(directory))
                logger.error("A killed attempt left a state that was not saved: it is now %s.", rescued)
            Workdir(directory).remove()

    def _end_orphans(self, grace_seconds: float) -> None:
        """Wait for Terraform without watchdog and leash, which the kernel interrupted, and then kill it."""
        kill_at = clock.now() + grace_seconds
        is_logged = False
        while (groups := self._orphaned_groups()) and clock.now() < kill_at:
            if not is_logged:
                logger.warning("Terraform of a killed runner still runs in %s; waiting for it.", self.work)
            is_logged = True
            time.sleep(0.1)
        signal_groups(groups, signal.SIGKILL)

    def _orphaned_groups(self) -> set[int]:
        """Find the groups by the directories, whose names are the beginnings of markers."""
        names = [directory.name for directory in self.work.iterdir() if len(directory.name) >= _NAME_CHARS]
        return set().union(*map(groups_of, names))

    def rescue(self, errored: Path, *, job_id: str, claim_id: str) -> Path:
        """Keep an errored state where nothing removes it, under the names by which the console knows it."""
        target = self.rescued / f"{job_id}_{claim_id}_{ERRORED_STATE}"
        shutil.move(errored, target)
        target.chmod(0o600)
        return target

    def rescued_states(self) -> Iterator[tuple[str, str, Path]]:
        """Return the states that wait for the console: job, claim, file."""
        for file in sorted(self.rescued.glob(f"*_*_{ERRORED_STATE}")):
            job_id, claim_id, _ = file.name.split("_", 2)
            yield job_id, claim_id, file

    @contextmanager
    def plugin_cache_lock(self, *, while_waiting: Callable[[], None]) -> Iterator[None]:
        """Lock the provider cache, which is not made for two writers, for one `init`."""
        descriptor = _open_lock(self.root / "plugin-cache.lock")
        try:
            while not _try_lock(descriptor):
                while_waiting()
                time.sleep(0.05)
            yield
        finally:
            os.close(descriptor)


class Workdir:
    """One attempt's directory: only its owner can enter it, and it is always removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.configuration = path / "configuration"  # where Terraform runs
        self.home = path / "home"
        self.scratch = path / "scratch"  # documents and the plan
        self.temporary = _temporary_of(path)  # what Terraform and its providers know as TMPDIR
        self._files = 0
        self._bytes = 0

    @property
    def directories(self) -> list[Path]:
        """All directories to remove at the end."""
        inside = self.temporary.is_relative_to(self.path)
        return [self.path] if inside else [self.path, self.temporary]

    def make(self) -> None:
        self.path.mkdir(mode=0o700)
        for directory in (self.configuration, self.home, self.scratch, self.temporary):
            directory.mkdir(mode=0o700)

    def record_attempt(self, *, job_id: str, claim_id: str) -> None:
        """Record the attempt, so that the next start can report what a killed runner left."""
        (self.path / _ATTEMPT_FILE).write_text(json.dumps({"job_id": job_id, "claim_id": claim_id}))

    def remove(self) -> None:
        for directory in self.directories:
            remove_tree(directory)

    def write(self, name: str, text: str) -> None:
        """Write a configuration file; refuses every name that could lead elsewhere."""
        parts = safe_parts(name)
        content = text.encode("utf-8", "surrogateescape")
        self._count(len(content))
        directory = self._directory(parts[:-1], name)
        try:
            descriptor = os.open(
                directory / parts[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600
            )
        except (FileExistsError, IsADirectoryError) as error:
            raise UnsafeFile(f"The file {name!r} is in the configuration twice.") from error
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)

    def enter(self, path: str) -> None:
        """Make a folder of what was written the configuration that Terraform works in."""
        if not path.strip("/"):
            return
        folder = self.configuration.joinpath(*safe_parts(path.strip("/")))
        if not folder.is_dir():
            raise UnsafeFile(f"The repository has no folder {path!r} at this commit.")
        self.configuration = folder

    def _directory(self, parts: tuple[str, ...], name: str) -> Path:
        directory = self.configuration
        for part in parts:
            directory /= part
            if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
                raise UnsafeFile(f"The file {name!r} lies below something that is not a directory.")
            directory.mkdir(mode=0o700, exist_ok=True)
        return directory

    def _count(self, size: int) -> None:
        self._files += 1
        self._bytes += size
        if self._files > MAX_FILES or self._bytes > MAX_CONFIGURATION_BYTES:
            raise UnsafeFile(
                f"The configuration is too large: at most {MAX_FILES} files and "
                f"{MAX_CONFIGURATION_BYTES // 1024 // 1024} MiB."
            )


def safe_parts(name: str) -> tuple[str, ...]:
    """Return the parts of a relative path that stays inside, and refuse any other."""
    if not name or len(name) > _MAX_PATH_CHARS or any(ord(char) < 32 or char in "\\\x7f" for char in name):
        raise UnsafeFile(
            f"The file name {name[:80]!r} is not allowed: empty, too long or with odd characters."
        )
    if name.startswith("/"):
        raise UnsafeFile(f"The file name {name!r} is not allowed: it is an absolute path.")
    parts = tuple(name.split("/"))
    if any(part in ("", ".", "..") for part in parts):
        raise UnsafeFile(f"The file name {name!r} is not allowed: it leaves its directory.")
    if parts[0] == TERRAFORMS_FOLDER or parts[-1] in TERRAFORMS_FILES:
        raise UnsafeFile(f"The file name {name!r} is not allowed: it belongs to Terraform itself.")
    return parts


def remove_tree(path: Path) -> None:
    """Remove a directory, also where something in it was made read-only."""
    shutil.rmtree(path, ignore_errors=True)
    if not path.exists():
        return
    for directory, _, _ in os.walk(path):
        Path(directory).chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        logger.error(
            "The working directory %s cannot be removed; remove it by hand, it may hold secrets.", path
        )


def _temporary_of(workdir: Path) -> Path:
    """Return a directory inside if its path is short enough, else one among the machine's temporary files.

    The name does not depend on what exists, so that it is found again after a kill.
    """
    inside = workdir / "tmp"
    fits = len(os.fsencode(inside)) <= _MAX_TEMPORARY_PATH_BYTES
    return inside if fits else Path(tempfile.gettempdir()) / f"slipway-{workdir.name}"


def _errored_states(workdir: Path) -> list[Path]:
    """Find errored states at any depth, since Terraform may run in a folder of a repository."""
    return [file for file in workdir.rglob(ERRORED_STATE) if ".terraform" not in file.parts]


def _read_attempt(workdir: Path) -> dict[str, str]:
    try:
        attempt = json.loads((workdir / _ATTEMPT_FILE).read_text())
        return {"job_id": str(attempt["job_id"]), "claim_id": str(attempt["claim_id"])}
    except (OSError, ValueError, KeyError, TypeError):  # the disk was full, or the kill came first
        return {"job_id": "unknown", "claim_id": workdir.name}


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
