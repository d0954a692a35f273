"""Fixtures, which live in modules of their own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.runner.conftest import provider_configuration, start_runner
from tests.console_app import background, console
from tests.git_host import Repository, git_repository
from tests.people import ended_connections, ours, theirs, transactional_db

__all__ = [
    "background",
    "console",
    "ended_connections",
    "ours",
    "provider_configuration",
    "start_runner",
    "theirs",
    "transactional_db",
]


@pytest.fixture
def repository(tmp_path: Path, settings: Any) -> Iterator[Repository]:
    """A repository on the suite's own Git host, which the settings allow."""
    settings.SLIPWAY_GIT_ALLOWED_HOSTS = ["127.0.0.1"]
    with git_repository(tmp_path / "repository") as served:
        yield served
