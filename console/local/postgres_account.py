"""The account of the embedded PostgreSQL: the current user, or a system user when that is root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from console.local.refusal import Refused

SYSTEM_USER = "slipway"


class Demotion(TypedDict, total=False):
    """The arguments of `subprocess` that start a program under the account."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Account:
    """The owner of the database's files and processes. `uid` is None for the current user."""

    uid: int | None = None
    gid: int | None = None

    @property
    def demotion(self) -> Demotion:
        if self.uid is None or self.gid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": [self.gid]}

    def take(self, path: Path) -> None:
        """Make the account the owner of a file or folder."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def take_tree(self, root: Path) -> None:
        self.take(root)
        for folder, _, files in os.walk(root):
            self.take(Path(folder))
            for name in files:
                self.take(Path(folder, name))

    def can_enter(self, folder: Path) -> bool:
        """Try to enter as the account: file modes alone miss access lists and mounts."""
        answer = subprocess.run(
            ["/bin/sh", "-c", 'cd "$1"', "sh", str(folder)],
            cwd="/",
            capture_output=True,
            check=False,
            **self.demotion,
        )
        return answer.returncode == 0

    def can_run(self, program: Path) -> bool:
        try:
            answer = subprocess.run(
                [program, "--version"], cwd="/", capture_output=True, check=False, **self.demotion
            )
        except OSError:
            return False
        return answer.returncode == 0


def postgres_account() -> Account:
    """Return the account. PostgreSQL refuses to run as root, so root uses a system user."""
    if os.geteuid() != 0:
        return Account()
    entry = _find_user() or _create_user()
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def _find_user() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        return None


def _create_user() -> pwd.struct_passwd:
    useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if useradd is None:
        raise Refused(
            f"PostgreSQL does not run as root and there is no useradd to create the user {SYSTEM_USER!r}. "
            "Create that system user, or start Slipway as an ordinary user."
        )
    subprocess.run(
        [
            useradd,
            "--system",
            "--user-group",
            "--no-create-home",
            "--home-dir=/nonexistent",
            "--shell=/usr/sbin/nologin",
            SYSTEM_USER,
        ],
        capture_output=True,
        check=False,
    )
    # Another process may have created it first: only its existence matters.
    entry = _find_user()
    if entry is None:
        raise Refused(
            f"The system user {SYSTEM_USER!r} for PostgreSQL could not be created. "
            "Create it, or start Slipway as an ordinary user."
        )
    return entry
