"""A console and its janitor as processes, runners, and identities of our organization's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest
from django.db import connection

from runner.clouds.contract import CredentialRequest
from runner.clouds.renewal import Renewer
from runner.protocol import IdentityAccess, IdentityTokenAnswer
from tests.people import Tenant, ended_connections, ours, theirs, transactional_db
from tests.runner.installation import Installation
from tests.runner.processes import RunnerProcess, spawn_runner
from tests.runner.terraforms import terraform_on_path

__all__ = ["ended_connections", "ours", "theirs", "transactional_db"]


# Not longer than a file: its janitor would take part in other files' tests.
@pytest.fixture(scope="module")
def installation(
    ended_connections: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    installation = Installation(tmp_path_factory.mktemp("installation"), lease_seconds=30)
    with django_db_blocker.unblock():
        installation.start()
        yield installation
        installation.stop()
        # Stopping ends every session of the database, also those that wait in this process's pool.
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]


class StartRunner(Protocol):
    def __call__(self, machine: Mapping[str, str], **environ: str) -> RunnerProcess: ...


@pytest.fixture
def start_runner(installation: Installation, ours: Tenant, tmp_path: Path) -> Iterator[StartRunner]:
    started: list[RunnerProcess] = []

    def start(machine: Mapping[str, str], **environ: str) -> RunnerProcess:
        runner = spawn_runner(
            console_url=installation.url,
            data_dir=tmp_path / "runner",
            log=tmp_path / "runner.log",
            environ={
                "SLIPWAY_TERRAFORM": terraform_on_path(),
                "SLIPWAY_RUNNER_CREDENTIAL": ours.new_runner("runner")[1],
                "NO_PROXY": "127.0.0.1",
                **machine,
                **environ,
            },
        )
        started.append(runner)
        return runner

    yield start
    for runner in started:
        runner.end()


@dataclass
class Attempted:
    """One attempt's need for credentials, without the attempt: what the SDKs do can be looked at."""

    request: CredentialRequest
    hidden: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


NewRequest = Callable[..., Attempted]


@pytest.fixture
def new_request(tmp_path: Path) -> Iterator[NewRequest]:
    renewers: list[Renewer] = []

    def make(
        provider: str,
        settings: dict[str, Any],
        token: str,
        *,
        environ: Mapping[str, str],
        only_reads: bool = False,
    ) -> Attempted:
        directory = tmp_path / f"credentials-{len(renewers)}"
        directory.mkdir(mode=0o700)
        hidden: list[str] = []
        warnings: list[str] = []
        renewers.append(Renewer(longest_seconds=3600, warn=warnings.append, on_renewal=lambda what: None))
        request = CredentialRequest(
            identity=IdentityAccess(identity_id="1", name="suite", provider=provider, settings=settings),
            job_number=1,
            only_reads=only_reads,
            directory=directory,
            environ=environ,
            job_environ={},
            ask_token=lambda wait: IdentityTokenAnswer(token=token, expires_in_seconds=900),
            hide=lambda *values: hidden.extend(map(str, values)),
            renewer=renewers[-1],
        )
        return Attempted(request, hidden, warnings)

    yield make
    for renewer in renewers:
        renewer.end()
