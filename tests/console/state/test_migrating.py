"""`slipway state migrate`: a state from elsewhere is taken over, and a plan shows whether it fits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from console.state.models import StateLock, StateVersion
from tests.console.state.backend_client import state
from tests.console.state.emulators import amazon, google, microsoft, s3
from tests.console.state.terraform import TWO_RESOURCES, Terraform
from tests.people import Tenant
from tests.runner.installation import Project, new_project
from tests.runner.processes import spawn_runner
from tests.runner.terraforms import terraform_on_path


@pytest.fixture
def project(ours: Tenant) -> Project:
    return new_project(ours, {"main.tf": TWO_RESOURCES}, name="taken-over")


@pytest.fixture
def runner(served: str, ours: Tenant, tmp_path: Path) -> Iterator[None]:
    process = spawn_runner(
        console_url=served,
        data_dir=tmp_path / "runner",
        log=tmp_path / "runner.log",
        environ={
            "SLIPWAY_TERRAFORM": terraform_on_path(),
            "SLIPWAY_RUNNER_CREDENTIAL": ours.new_runner("runner")[1],
        },
    )
    yield
    process.end()


def migrate(served: str, token: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("slipway")), "state", "migrate", "--console", served, *arguments],
        env={"PATH": os.environ["PATH"], "SLIPWAY_TOKEN": token, "NO_PROXY": "127.0.0.1",
             "TF_CLI_CONFIG_FILE": os.devnull, "CHECKPOINT_DISABLE": "1", **environ},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )  # fmt: skip


def elsewhere(folder: Path, **environ: str) -> Terraform:
    folder.mkdir()
    return Terraform(folder, environ).write(main=TWO_RESOURCES)


@contextmanager
def kept_in(kind: str, folder: Path) -> Iterator[tuple[dict[str, object], dict[str, str]]]:
    """The settings and the environment of a place where a state can be."""
    if kind == "pg":
        database = connection.settings_dict
        where = f"host={database['HOST']} user={database['USER']} password={database['PASSWORD']}"
        login = f"{where} dbname={database['NAME']} sslmode=disable"
        yield {"schema_name": "elsewhere"}, {"PG_CONN_STR": login}
        with connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA elsewhere CASCADE")
        return
    if kind == "s3":
        with amazon(folder) as environment:
            cloud = s3(environment, with_table=False)
            yield {**cloud.settings, "key": "old/place.tfstate"}, environment
        return
    start, place = {"gcs": (google, "prefix"), "azurerm": (microsoft, "key")}[kind]
    with start(folder) as cloud:
        yield {**cloud.settings, place: "old/place"}, {**cloud.environment, **cloud.machine}


@pytest.mark.parametrize("kind", ["s3", "gcs", "azurerm", "pg"])
def test_from_another_backend_with_an_empty_plan_afterwards(
    kind: str,
    served: str,
    ours: Tenant,
    project: Project,
    runner: None,
    tmp_path: Path,
    reachable_tmp_path: Path,
) -> None:
    with kept_in(kind, reachable_tmp_path) as (settings, environment):
        target = elsewhere(tmp_path / "there", **environment)
        (target.folder / "backend.tf.json").write_text(
            json.dumps({"terraform": {"backend": {kind: settings}}})
        )
        target.init().apply()
        arguments = [
            f"--set={name}={str(value).lower() if value is True else value}"
            for name, value in settings.items()
        ]
        migration = migrate(
            served,
            ours.token_of(ours.operator),
            "--spec",
            "ours/taken-over",
            "--from",
            kind,
            *arguments,
            **environment,
        )
        original = target.pull()
    assert migration.returncode == 0, migration.stdout + migration.stderr
    assert "The plan is empty" in migration.stdout
    version = StateVersion.objects.get(spec=project.spec)
    assert (version.serial, version.lineage) == (original["serial"], original["lineage"])
    assert not StateLock.objects.exists()
    # What opens the other backend is the shell's, and stays there.
    opened_by = [value for name, value in environment.items() if name.endswith(("TOKEN", "KEY", "CONN_STR"))]
    assert not [
        value for value in opened_by if len(value) > 8 and value in migration.stdout + migration.stderr
    ]


def test_from_a_local_file_whose_plan_is_not_empty(
    served: str, ours: Tenant, project: Project, runner: None, tmp_path: Path
) -> None:
    file = tmp_path / "terraform.tfstate"
    file.write_bytes(state(4))
    migration = migrate(
        served,
        ours.token_of(ours.operator),
        "--spec",
        "ours/taken-over",
        "--from",
        "local",
        "--file",
        str(file),
    )
    assert migration.returncode == 1, migration.stdout + migration.stderr
    assert "NOT empty: 4 to add, 2 of the outputs to change." in migration.stdout
    assert StateVersion.objects.get(spec=project.spec).serial == 4


def test_each_refusal_says_what_to_do(served: str, ours: Tenant, project: Project, tmp_path: Path) -> None:
    file = tmp_path / "terraform.tfstate"
    token = ours.token_of(ours.operator)
    local = ["--spec", "ours/taken-over", "--from", "local", "--file", str(file), "--no-plan"]

    def said(*arguments: str, token: str = token) -> str:
        answer = migrate(served, token, *arguments)
        assert answer.returncode == 2, answer.stdout + answer.stderr
        return answer.stderr

    assert "cannot be read" in said(*local)
    file.write_text("not state")
    assert "not Terraform state" in said(*local)
    file.write_text("[" * 100_000)
    assert "not Terraform state" in said(*local)
    file.write_bytes(state(4))
    assert "unknown, expired or revoked" in said(*local, token="slu_" + "x" * 43)
    assert "you do not have access to it" in said(*[*local[:1], "ours/nowhere", *local[2:]])
    assert "Terraform cannot read the state" in said("--spec", "ours/taken-over", "--from", "pg")
    StateLock.objects.create(spec=project.spec, lock_id="a", info={"ID": "a"}, user=ours.admin)
    assert "locked by ours-admin" in said(*local)
    assert not StateVersion.objects.exists()
