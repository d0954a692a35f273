"""`slipway up` refuses bad input in one line with the remedy, exits with 2, and loses nothing."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
from pathlib import Path

import psycopg
import pytest

from console.local.data_directory import open_data_directory
from console.local.installation import Installation
from tests.console.up.conftest import Slipway


@pytest.fixture
def root(reachable_tmp_path: Path) -> Path:
    """The data directory that `slipway` uses."""
    return reachable_tmp_path / "data"


def refusal(answer: subprocess.CompletedProcess[str]) -> str:
    """The one line of a refusal."""
    assert answer.returncode == 2, answer
    lines = answer.stderr.splitlines()
    assert len(lines) == 1, answer.stderr
    assert lines[0].startswith("slipway: ")
    return lines[0]


def test_a_port_in_use_is_refused_before_anything_is_made(slipway: Slipway, root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = refusal(slipway("up", f"--port={port}"))
    assert f"Port {port} " in line
    assert "--port" in line
    assert not root.exists()


def test_an_unknown_host_is_refused(slipway: Slipway) -> None:
    assert "--host" in refusal(slipway("up", "--host=no-such-host.invalid"))


@pytest.mark.parametrize("port", ["70000", "http", "-1"])
def test_a_port_that_is_none_is_refused(slipway: Slipway, port: str) -> None:
    answer = slipway("up", f"--port={port}")
    assert answer.returncode == 2
    assert "use a number from 0 to 65535" in answer.stderr


def test_a_directory_that_is_not_ours_is_left_alone(slipway: Slipway, root: Path) -> None:
    root.mkdir()
    (root / "thesis.tex").write_text("years of work")
    mode = root.stat().st_mode
    line = refusal(slipway("up", "--port=0"))
    assert "not empty and not Slipway's" in line
    assert "--data-dir" in line
    assert [entry.name for entry in root.iterdir()] == ["thesis.tex"]
    assert root.stat().st_mode == mode


def test_a_file_as_the_directory_is_refused(slipway: Slipway, root: Path) -> None:
    root.write_text("a file")
    assert "is a file" in refusal(slipway("up", "--port=0"))


def test_a_directory_that_cannot_be_made_is_refused(slipway: Slipway) -> None:
    """/proc takes no directory from anybody, root included."""
    line = refusal(slipway("up", "--port=0", "--data-dir=/proc/slipway"))
    assert "/proc/slipway" in line
    assert "--data-dir" in line


def test_a_directory_of_another_user_is_refused(slipway: Slipway, root: Path) -> None:
    data = open_data_directory(root)
    other = os.geteuid() + 1
    if os.geteuid() == 0:
        os.chown(data.marker, other, -1)
        assert "belongs to the user" in refusal(slipway("up", "--port=0"))
    else:  # Nobody can give files away but root; a directory without the right to write is the same case.
        root.chmod(0o500)
        assert "not writable" in refusal(slipway("up", "--port=0"))
        root.chmod(0o700)


def test_a_directory_of_a_newer_version_is_refused(slipway: Slipway, root: Path) -> None:
    data = open_data_directory(root)
    data.marker.write_text(json.dumps({"format": 99, "postgres": "25"}))
    assert "by a newer Slipway" in refusal(slipway("up", "--port=0"))


def test_a_broken_marker_is_refused(slipway: Slipway, root: Path) -> None:
    open_data_directory(root).marker.write_text("{")
    assert "cannot be read as Slipway's marker" in refusal(slipway("up", "--port=0"))


def test_a_second_up_is_refused_and_names_the_first(slipway: Slipway, root: Path) -> None:
    with open_data_directory(root).hold(address="http://127.0.0.1:8123"):
        line = refusal(slipway("up", "--port=0"))
    assert f"process {os.getpid()}, http://127.0.0.1:8123" in line


def test_a_lock_without_a_holder_is_not_in_the_way(slipway: Slipway, root: Path) -> None:
    data = open_data_directory(root)
    data.lock_file.write_text("4194304 http://127.0.0.1:8000\n")
    data.secrets_file.write_text("{}")  # The next refusal shows that the lock was passed.
    assert "secrets.json cannot be read" in refusal(slipway("up", "--port=0"))
    with data.lock_file.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_lost_secrets_are_never_replaced(slipway: Slipway, root: Path) -> None:
    data = open_data_directory(root)
    (data.postgres / "cluster").mkdir(parents=True)
    assert "Put it back from your backup" in refusal(slipway("up", "--port=0"))
    assert not data.secrets_file.exists()


def test_a_terraform_that_does_not_run_is_refused(slipway: Slipway, root: Path) -> None:
    line = refusal(slipway("up", "--port=0", SLIPWAY_TERRAFORM="/nonexistent/terraform"))
    assert "/nonexistent/terraform" in line
    assert "SLIPWAY_TERRAFORM" in line
    assert not root.exists()


@pytest.mark.parametrize("url", ["postgresql://nobody@127.0.0.1:1/nothing", "postgresql://[half"])
def test_an_unreachable_database_is_refused(slipway: Slipway, root: Path, url: str) -> None:
    line = refusal(slipway("up", "--port=0", DATABASE_URL=url))
    assert "The database of DATABASE_URL does not answer" in line
    assert not root.exists()


def test_a_database_of_a_newer_version_is_left_alone(slipway: Slipway, root: Path) -> None:
    data = open_data_directory(root)
    postgres = Installation(data=data, secrets=data.secrets(), base_environment={}).embedded_postgres()
    with postgres:
        postgres.ensure_database()
        with psycopg.connect(postgres.url()) as connection:
            connection.execute(
                "CREATE TABLE django_migrations (id serial, app text, name text, applied timestamptz)"
            )
            connection.execute(
                "INSERT INTO django_migrations (app, name) VALUES ('jobs', '9999_from_the_future')"
            )
    line = refusal(slipway("up", "--port=0"))
    assert "by a newer Slipway" in line
    assert "jobs.9999_from_the_future" in line
    with postgres, psycopg.connect(postgres.url()) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == [("django_migrations",)]


def test_a_reset_without_an_installation_is_refused(slipway: Slipway) -> None:
    assert "There is no Slipway in" in refusal(slipway("reset-password"))
