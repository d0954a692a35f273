"""The suite's own PostgreSQL: embedded, thrown away, started before Django reads its settings.

It is a plugin (see pyproject.toml) and not a conftest, since pytest-django reads the settings before any
conftest is imported. With xdist the controller starts the one server; each worker has a database of its own
on it. Whatever DATABASE_URL the caller had is never used: tests delete what they find.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.local.embedded_postgres import EmbeddedPostgres

#: What tests may learn from the caller's environment about Slipway.
KEPT = {"SLIPWAY_TERRAFORM"}

_until_the_end = contextlib.ExitStack()


def is_xdist_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


def reachable_directory(prefix: str) -> Path:
    """A short-named folder that another account may pass through, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    folder.chmod(0o711)
    return folder


def _set_environment(database_url: str, folder: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("PG", "SLIPWAY_")) and name not in KEPT]:
        del os.environ[name]
    os.environ |= {
        "DATABASE_URL": database_url,
        "SLIPWAY_DATA_DIR": str(folder / "data"),
        "SLIPWAY_SECRET_KEY": "only-for-the-tests-" + "x" * 50,
        "SLIPWAY_ENCRYPTION_KEYS": "test:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    }


@contextlib.contextmanager
def throwaway_postgres() -> Iterator[EmbeddedPostgres]:
    """A server that exists for this block, and an environment in which Django uses it."""
    folder = reachable_directory("slipway-tests-")
    try:
        with EmbeddedPostgres(folder / "postgres", secrets.token_urlsafe(), durable=False) as server:
            _set_environment(server.url(), folder)
            yield server
    finally:
        shutil.rmtree(folder)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    if not is_xdist_worker():
        _until_the_end.enter_context(throwaway_postgres())


def pytest_sessionfinish() -> None:
    """Stop the heartbeat that `console.asgi` starts: it would go on without its database."""
    if beat := sys.modules.get("console.live.beat"):
        beat.stop_beating()


def pytest_unconfigure() -> None:
    _until_the_end.close()
