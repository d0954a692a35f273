"""Fixtures: people, the console in this process, and a whole installation with runners of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from tests.chaos.runner.conftest import cloud, provider_configuration, start_runner
from tests.console_app import background, console
from tests.people import ended_connections, ours, theirs, transactional_db
from tests.runner.installation import Installation

__all__ = [
    "background",
    "cloud",
    "console",
    "ended_connections",
    "ours",
    "provider_configuration",
    "start_runner",
    "theirs",
    "transactional_db",
]


# Not longer than a file: its janitor would take part in other files' tests.
@pytest.fixture(scope="module")
def installation(
    ended_connections: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    installation = Installation(tmp_path_factory.mktemp("installation"))
    with django_db_blocker.unblock():
        installation.start()
        yield installation
        installation.stop()
        # Stopping ends every session of the database, also those that wait in this process's pool.
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]
