"""Fixtures: people, the console in this process, a served one, and Terraform directories."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specs.models import Spec
from tests.console.state.served import served_console
from tests.console.state.terraform import Terraform, against
from tests.console_app import Background, background, console
from tests.people import Tenant, ended_connections, ours, theirs, transactional_db
from tests.throwaway_postgres import reachable_directory

__all__ = ["background", "console", "ended_connections", "ours", "theirs", "transactional_db"]


# Not longer than a file: its signs of life would be seen by other files' tests.
@pytest.fixture(scope="module")
def served(background: Background, django_db_blocker: Any) -> Iterator[str]:
    """The address of a console in a process of its own; it sees what tests commit."""
    folder = reachable_directory("slipway-served-")
    with django_db_blocker.unblock(), served_console(folder / "console.log") as running:
        yield running.address
    shutil.rmtree(folder)


NewLaptop = Callable[..., Terraform]


@pytest.fixture
def laptop(served: str, ours: Tenant, tmp_path: Path) -> NewLaptop:
    """Makes a person's Terraform that keeps its state in the served console."""
    folders: list[Path] = []

    def make(*, spec: Spec | None = None, person: str = "operator", token: str | None = None) -> Terraform:
        folder = tmp_path / f"laptop-{len(folders)}"
        folder.mkdir()
        folders.append(folder)
        address = f"{served}/api/state/{(spec or ours.spec).pk}"
        password = token or ours.token_of(getattr(ours, person))
        return Terraform(folder, against(address, user=person, password=password))

    return make
