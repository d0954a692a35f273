"""The data directory: its path, its format and owner, its secrets, and its lock."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import fcntl
import json
import os
import pwd
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from console.local.embedded_postgres import MAJOR_VERSION
from console.local.postgres_account import postgres_account
from console.local.refusal import Refused

FORMAT = 1
MARKER_NAME = "slipway-data.json"

#: Entries that an empty directory may have: the file system's own, and a leftover of a killed start.
NOT_CONTENT = {"lost+found", f"{MARKER_NAME}.unfinished"}


@dataclass(frozen=True)
class Secrets:
    """The secrets of this installation. Without them the sealed values in the database cannot be opened."""

    secret_key: str
    encryption_keys: tuple[str, ...]  # `id:base64`, the first one seals
    database_password: str

    @classmethod
    def generate(cls) -> Secrets:
        key = base64.b64encode(secrets.token_bytes(32)).decode()
        return cls(
            secret_key=secrets.token_urlsafe(50),
            encryption_keys=(f"k1:{key}",),
            database_password=secrets.token_urlsafe(32),
        )


@dataclass(frozen=True)
class DataDirectory:
    """Paths of one data directory, which `open_data_directory` creates or checks."""

    root: Path

    @property
    def marker(self) -> Path:
        return self.root / MARKER_NAME

    @property
    def secrets_file(self) -> Path:
        return self.root / "secrets.json"

    @property
    def lock_file(self) -> Path:
        return self.root / "up.lock"

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def log(self) -> Path:
        return self.root / "log"

    @property
    def runner(self) -> Path:
        return self.root / "runner"

    @property
    def runner_credential(self) -> Path:
        return self.runner / "credential"

    def secrets(self) -> Secrets:
        """Return the secrets of this installation, created once at its first start."""
        if self.secrets_file.exists():
            return self._read_secrets()
        if (self.postgres / "cluster").exists():
            raise Refused(
                f"{self.secrets_file} is missing, and the database beside it cannot be opened without it. "
                "Put it back from your backup."
            )
        new_secrets = Secrets.generate()
        _write_private(self.secrets_file, dataclasses.asdict(new_secrets))
        return new_secrets

    def _read_secrets(self) -> Secrets:
        try:
            fields = json.loads(self.secrets_file.read_text())
            return Secrets(
                secret_key=fields["secret_key"],
                encryption_keys=tuple(fields["encryption_keys"]),
                database_password=fields["database_password"],
            )
        except (ValueError, KeyError, TypeError):
            raise Refused(
                f"{self.secrets_file} cannot be read as Slipway's secrets. Put it back from your backup."
            ) from None

    @contextlib.contextmanager
    def hold(self, *, address: str) -> Iterator[None]:
        """Lock the directory for one `slipway up`. The lock is never stale: the kernel frees it."""
        with self.lock_file.open("a+") as lock:
            if not _lock_within(lock, seconds=1):
                raise _used_by_another(self)
            lock.truncate(0)
            lock.write(f"{os.getpid()} {address}\n")
            lock.flush()
            yield

    def refuse_if_held(self) -> None:
        if self.is_held():
            raise _used_by_another(self)

    def is_held(self) -> bool:
        try:
            with self.lock_file.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False  # Missing, or not readable: opening the directory tells which.
        return False


def data_directory_path(option: str | None, environ: Mapping[str, str]) -> Path:
    """Return the option, else SLIPWAY_DATA_DIR, else the default: the system's for root, else the user's."""
    if option or environ.get("SLIPWAY_DATA_DIR"):
        return Path(option or environ["SLIPWAY_DATA_DIR"]).expanduser().absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/slipway")
    home = environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "slipway"


def open_data_directory(root: Path) -> DataDirectory:
    """Check that `root` is Slipway's and writable, or set it up if it is new or empty."""
    data = DataDirectory(root)
    try:
        check_data_directory(root)
        if not data.marker.exists():
            _make_ours(data)
        for folder in (data.log, data.runner):
            folder.mkdir(mode=0o700, exist_ok=True)
    except PermissionError:
        raise Refused(
            f"The data directory {root} is not writable for {_user_name(os.geteuid())}. "
            "Change its owner, or choose another with --data-dir."
        ) from None
    except OSError as error:
        raise Refused(
            f"The data directory {root} cannot be used: {error.strerror}. Choose another with --data-dir."
        ) from None
    return data


def check_data_directory(root: Path) -> None:
    """Refuse a directory that is not Slipway's, without changing anything."""
    if root.exists() and not root.is_dir():
        raise Refused(f"The data directory {root} is a file. Choose another with --data-dir.")
    if not root.exists():
        return
    marker = root / MARKER_NAME
    if marker.exists():
        _require_known_format(marker)
        _require_own(root, marker)
        _require_writable(root)
    elif any(entry.name not in NOT_CONTENT for entry in root.iterdir()):
        raise Refused(
            f"The directory {root} is not empty and not Slipway's (no {MARKER_NAME}). "
            "Choose an empty or new one with --data-dir."
        )


def _require_known_format(marker: Path) -> None:
    try:
        format_number = int(json.loads(marker.read_text())["format"])
    except (ValueError, KeyError, TypeError):
        raise Refused(
            f"{marker} cannot be read as Slipway's marker. Put it back from your backup, "
            "or choose another --data-dir."
        ) from None
    if format_number > FORMAT:
        raise Refused(
            f"The data directory {marker.parent} was created by a newer Slipway (format "
            f"{format_number}, known here: {FORMAT}). Start that Slipway, or choose another --data-dir."
        )


def _require_own(root: Path, marker: Path) -> None:
    """Refuse another user's directory: two users in one would lock each other out file by file."""
    owner = marker.stat().st_uid
    if owner != os.geteuid():
        raise Refused(
            f"The data directory {root} belongs to the user {_user_name(owner)}. "
            "Start Slipway as that user, or choose another --data-dir."
        )


def _require_writable(root: Path) -> None:
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError


def _make_ours(data: DataDirectory) -> None:
    """Set up the directory: the database's account may traverse it, nobody else may read it."""
    data.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    account = postgres_account()
    if account.gid is None:
        data.root.chmod(0o700)
    else:
        os.chown(data.root, -1, account.gid)
        data.root.chmod(0o710)
    _write_private(data.marker, {"format": FORMAT, "postgres": MAJOR_VERSION})


def _write_private(path: Path, content: object) -> None:
    """Write the file atomically, so that a power failure leaves all of it or nothing."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)


def _lock_within(lock: IO[str], *, seconds: float) -> bool:
    """Try for a moment to take the lock: a check of the lock also holds it, briefly."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def _used_by_another(data: DataDirectory) -> Refused:
    holder = data.lock_file.read_text().split()
    where = f" (process {holder[0]}, {holder[1]})" if len(holder) == 2 else ""
    return Refused(
        f"Another `slipway up`{where} is using {data.root}. Stop it, or choose another --data-dir."
    )


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
