"""A console and real runner processes, each with a data directory of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from runner import clock
from runner.terraform import process
from runner.terraform.binary import find_terraform
from runner.terraform.watchdog import Watchdog
from tests.runner.fake_console import CREDENTIAL, FakeConsole
from tests.runner.processes import ROOT, RunnerProcess, spawn_runner
from tests.runner.terraforms import all_terraforms, terraform_on_path
from tests.sample_cloud.mirror import install_provider
from tests.sample_cloud.service import Cloud

__all__ = ["ROOT", "RunnerProcess"]


#: Longer than anything that is waited for.
STUBBORN_SECONDS = 120


class StartRunner(Protocol):
    def __call__(self, *arguments: str, through: Sequence[str] = ..., **environ: str) -> RunnerProcess: ...


@pytest.fixture
def console() -> Iterator[FakeConsole]:
    console = FakeConsole()
    console.start()
    yield console
    console.close()


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with Cloud() as cloud:
        yield cloud


@pytest.fixture(scope="session")
def provider_configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Terraform's CLI configuration by which it finds the provider of the suite's cloud."""
    return install_provider(tmp_path_factory.mktemp("provider"))


@pytest.fixture
def start_runner(console: FakeConsole, tmp_path: Path) -> Iterator[StartRunner]:
    started: list[RunnerProcess] = []

    def start(*arguments: str, through: Sequence[str] = (), **environ: str) -> RunnerProcess:
        base = {"SLIPWAY_TERRAFORM": terraform_on_path(), "SLIPWAY_RUNNER_CREDENTIAL": CREDENTIAL}
        runner = spawn_runner(
            console_url=console.url,
            data_dir=tmp_path / "data",
            log=tmp_path / f"runner-{len(started)}.log",
            arguments=arguments,
            environ=base | environ,
            through=through,
        )
        started.append(runner)
        return runner

    yield start
    for runner in started:
        runner.end()


@pytest.fixture(params=["installed", "embedded"])
def each_terraform(request: pytest.FixtureRequest) -> str:
    """A test that asks for this runs with both Terraforms."""
    return all_terraforms()[request.param]


@pytest.fixture
def runner(start_runner: StartRunner) -> RunnerProcess:
    return start_runner()


@pytest.fixture
def stubborn_terraform(tmp_path: Path) -> str:
    """A Terraform whose apply does not react to being interrupted."""
    script = tmp_path / "stubborn"
    script.write_text(f"""#!/bin/sh
        if [ "$1" = apply ]; then trap '' INT; echo begun; sleep {STUBBORN_SECONDS}; fi
        exec {find_terraform().path} "$@"
    """)
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    watchdog = Watchdog()
    watchdog.start()
    yield watchdog
    watchdog.close()


@pytest.fixture
def leash(watchdog: Watchdog) -> process.Leash:
    """Return the leash for a command without a runner."""
    marker, moment = "the-attempt", clock.now()
    watchdog.watch(marker, interrupt_at=moment + 600, kill_at=moment + 600, directories=[], relay=None)
    return process.Leash(
        descriptors=watchdog.leash(marker), limits={}, on_interrupt=lambda: None, is_alive=lambda pid: False
    )
