"""Fixtures for the whole suite. The database comes from tests/throwaway_postgres.py."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console_app import background, console, runner
from tests.console_process import programs
from tests.people import ended_connections, ours, theirs, transactional_db
from tests.throwaway_postgres import reachable_directory

# Fixtures that stand in modules of their own, beside what they are made of.
__all__ = [
    "background",
    "console",
    "ended_connections",
    "ours",
    "programs",
    "runner",
    "theirs",
    "transactional_db",
]

#: Files with few tests that take long, each with processes of its own. They begin first: at the end of a run
#: on several cores there is then always something short left for whoever is idle.
LONG = (
    "chaos",
    "journeys",
    "console/state",
    "console/pages",
    "console/plans",
    "runner",
    "console/up",
    "specs",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _rank(item.path))


def _rank(path: Path) -> int:
    folder = path.relative_to(Path(__file__).parent).as_posix()
    return next((place for place, prefix in enumerate(LONG) if folder.startswith(prefix)), len(LONG))


@pytest.fixture
def reachable_tmp_path() -> Iterator[Path]:
    """A directory like tmp_path, with a short name and reachable for the database's own account."""
    folder = reachable_directory("slipway-")
    yield folder
    shutil.rmtree(folder)
