"""The database is restarted in the middle: the console comes back by itself, the runner goes on. (Slow.)"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from console.local.embedded_postgres import EmbeddedPostgres
from runner.protocol import Claim
from tests.chaos.remote import RemoteRunner
from tests.console_process import ROOT, Programs
from tests.waiting import wait_until

#: A small installation, made by the console's own services in a process of its own.
PREPARE = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from tests.people import make_tenant
ours = make_tenant("ours")
print(ours.new_runner("worker")[1])
for name in ("first", "second", "third"):
    ours.request(spec=ours.new_spec(name))
"""


@pytest.fixture
def postgres(reachable_tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """A server of the test's own; it may crash, so it writes as it would in earnest."""
    with EmbeddedPostgres(reachable_tmp_path / "postgres", secrets.token_urlsafe()) as server:
        server.ensure_database()
        yield server


@pytest.fixture
def programs(postgres: EmbeddedPostgres, tmp_path: Path) -> Iterator[Programs]:
    programs = Programs(tmp_path, postgres.url())
    yield programs
    programs.end()


@pytest.fixture
def credential(programs: Programs) -> str:
    environment = {"DJANGO_SETTINGS_MODULE": "console.settings", "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-P", "-c", PREPARE],
        env=os.environ | programs.environment | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def ask(postgres: EmbeddedPostgres, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(postgres.url()) as connection:
        return connection.execute(query).fetchall()


def test_a_runner_keeps_its_claim_over_a_restart_and_finishes(
    postgres: EmbeddedPostgres, programs: Programs, credential: str
) -> None:
    server, janitor = programs.server(), programs.janitor()
    janitor.wait_for_lead()
    with RemoteRunner(server.url, credential) as runner:
        run_over(postgres.restart, runner)
        run_over(lambda: crash(postgres), runner)
        assert runner.claim(wait=20) is not None
    assert server.is_running
    assert janitor.is_running
    looks = "SELECT looked_at FROM janitor_watch"
    looked_at = ask(postgres, looks)
    wait_until(lambda: ask(postgres, looks) != looked_at, what="another look of the janitor")
    ended = "SELECT outcome, count(*)::int FROM jobs_attempt GROUP BY outcome ORDER BY outcome"
    assert ask(postgres, ended) == [("running", 1), ("succeeded", 2)]


def test_a_claim_that_a_crash_forgot_opens_nothing_and_the_job_runs_once(
    postgres: EmbeddedPostgres, programs: Programs, credential: str
) -> None:
    keep_commits_in_memory(postgres)
    server = programs.server()
    with RemoteRunner(server.url, credential) as runner:
        forgotten = claim_and_forget(postgres, runner)
        refused = [
            runner.heartbeat(forgotten),
            runner.report(forgotten, "PROCESSING"),
            runner.log(forgotten, 1, "from nowhere"),
            runner.report(forgotten, "SUCCESS"),
        ]
        assert [(answer.status_code, answer.json()["code"]) for answer in refused] == [
            (409, "stale_claim")
        ] * 4

        again = runner.take_and_start()
        assert again.job_id == forgotten.job_id
        assert runner.report(again, "SUCCESS").json() == {"status": "SUCCESS"}
    rows = ask(postgres, f"SELECT claim_id::text, outcome FROM jobs_attempt WHERE job_id = '{again.job_id}'")
    assert rows == [(again.claim_id, "succeeded")]


def keep_commits_in_memory(postgres: EmbeddedPostgres) -> None:
    """Wait for commits that do not wait for the disk: PostgreSQL allows ten seconds at most."""
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        connection.execute("SELECT pg_reload_conf()")


def claim_and_forget(postgres: EmbeddedPostgres, runner: RemoteRunner) -> Claim:
    """The server's writer may wake in the very moment between claim and crash, but not each time."""
    for _ in range(3):
        claim = runner.claim(wait=10)
        assert claim is not None
        crash(postgres)
        if not ask(postgres, f"SELECT FROM jobs_jobclaim WHERE claim_id = '{claim.claim_id}'"):
            return claim
    pytest.fail("no claim was forgotten: claims wait for the disk, and decision 9 no longer describes them")


def crash(postgres: EmbeddedPostgres) -> None:
    postgres.kill()
    postgres.restart()


def run_over(interruption: Callable[[], None], runner: RemoteRunner) -> None:
    claim = runner.take_and_start()
    assert runner.log(claim, 1, "before").status_code == 200

    interruption()

    assert runner.heartbeat(claim).status_code == 200
    assert runner.log(claim, 2, "after").json() == {"next_seq": 3}
    assert runner.report(claim, "SUCCESS").json() == {"status": "SUCCESS"}
