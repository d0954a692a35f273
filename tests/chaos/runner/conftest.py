"""The installation that the tests here share, and runners of their own for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
from django.db import connection

from tests.people import Tenant
from tests.runner.installation import Installation
from tests.runner.processes import RunnerProcess, spawn_runner
from tests.runner.terraforms import all_terraforms, terraform_on_path
from tests.sample_cloud.mirror import install_provider
from tests.sample_cloud.service import Cloud


class StartRunner(Protocol):
    def __call__(
        self,
        *arguments: str,
        name: str = ...,
        console_url: str = ...,
        through: Sequence[str] = ...,
        **environ: str,
    ) -> RunnerProcess: ...


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


@pytest.fixture
def patient_installation(ours: Tenant, tmp_path: Path) -> Iterator[Installation]:
    """Start a console with a lease that outlasts its restart, also on a busy machine."""
    installation = Installation(tmp_path, lease_seconds=90)
    installation.start()
    yield installation
    installation.stop()


@pytest.fixture(scope="session")
def provider_configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_provider(tmp_path_factory.mktemp("provider"))


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with Cloud() as cloud:
        yield cloud


@pytest.fixture(params=["installed", "embedded"])
def each_terraform(request: pytest.FixtureRequest) -> str:
    """A test that asks for this runs with both Terraforms."""
    return all_terraforms()[request.param]


@pytest.fixture
def start_runner(
    installation: Installation, ours: Tenant, provider_configuration: Path, tmp_path: Path
) -> Iterator[StartRunner]:
    started: list[RunnerProcess] = []

    def start(
        *arguments: str,
        name: str = "runner",
        console_url: str = installation.url,
        through: Sequence[str] = (),
        **environ: str,
    ) -> RunnerProcess:
        base = {
            "SLIPWAY_TERRAFORM": terraform_on_path(),
            "SLIPWAY_RUNNER_CREDENTIAL": ours.new_runner(name)[1],
            "SLIPWAY_RUNNER_TERRAFORM_CONFIG": str(provider_configuration),
        }
        runner = spawn_runner(
            console_url=console_url,
            data_dir=tmp_path / name,
            log=tmp_path / f"{name}-{len(started)}.log",
            arguments=arguments,
            environ=base | environ,
            through=through,
        )
        started.append(runner)
        return runner

    yield start
    for runner in started:
        runner.end()
