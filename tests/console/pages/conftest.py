"""Fixtures: one sample organization for a whole file, whose tests leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from console.accounts.models import User
from tests.console.pages.sample_organization import Sample, create_sample
from tests.console_app import Background, Console
from tests.console_process import Programs, Server, database_url
from tests.people import empty_database, make_tenant


@pytest.fixture(scope="module")
def sample(ended_connections: None, background: Background, django_db_blocker: Any) -> Iterator[Sample]:
    with django_db_blocker.unblock():
        yield create_sample(Console(background), make_tenant("ours"))
        empty_database()
        connection.close()


@pytest.fixture(scope="module")
def stranger(sample: Sample) -> User:
    """The admin of another organization."""
    return make_tenant("theirs").admin


@pytest.fixture(scope="module")
def server(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A console in a process of its own, for a browser."""
    programs = Programs(tmp_path_factory.mktemp("console"), database_url())
    yield programs.server(SLIPWAY_INSECURE_COOKIES="1")
    programs.end()


@pytest.fixture
def db(sample: Sample) -> None:
    """pytest-django makes a database only where a test asks for one by this name; ours lasts for a file."""
