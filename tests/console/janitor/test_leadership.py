"""Any number of janitors may run: one leads, and when it is killed another takes over."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection
from django.db.models.functions import Now

from console.janitor.leader import LOCK_KEY
from console.janitor.models import Watch
from console.jobs.models import Job
from console.live.connection import conninfo
from console.live.models import ConsoleBeat
from tests.console_app import Console
from tests.console_process import Janitor, Programs
from tests.database_clock import a_console_has_been_serving, let_lease_run_out
from tests.people import Tenant, fresh
from tests.waiting import wait_until


@pytest.fixture
def two_janitors(programs: Programs) -> tuple[Janitor, Janitor]:
    """The one that leads, and the one that waits."""
    a_console_has_been_serving()
    first = programs.janitor("first")
    first.wait_for_lead()
    return first, programs.janitor("second")


def lose(console: Console, ours: Tenant, name: str) -> Job:
    pool = ours.new_pool(name)
    job = ours.request(spec=ours.new_spec(name, pool=pool))
    console.new_runner(ours, f"runner-of-{name}", pool=pool).take()
    ConsoleBeat.objects.update(beat_at=Now())
    let_lease_run_out(job)
    return job


def is_taken_back(job: Job) -> bool:
    return fresh(job).status == "QUEUED"


def test_when_the_leading_janitor_is_killed_the_other_takes_over(
    console: Console, ours: Tenant, two_janitors: tuple[Janitor, Janitor]
) -> None:
    leading, waiting = two_janitors
    first = lose(console, ours, "first")
    wait_until(lambda: is_taken_back(first), what="a job taken back by the first janitor")
    assert not waiting.leads

    leading.kill()
    waiting.wait_for_lead()
    second = lose(console, ours, "second")
    wait_until(lambda: is_taken_back(second), what="a job taken back by the second janitor")
    assert first.attempts.count() == second.attempts.count() == 1
    assert "Traceback" not in waiting.log


def test_a_janitor_that_loses_its_session_stops_leading_and_comes_back(programs: Programs) -> None:
    a_console_has_been_serving()
    janitor = programs.janitor()
    janitor.wait_for_lead()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks "
            "WHERE locktype = 'advisory' AND ((classid::bigint << 32) | objid::bigint) = %s "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            [LOCK_KEY],
        )
        assert cursor.fetchall() == [(True,)]
    wait_until(lambda: janitor.log.count("this janitor leads") == 2, what="its second lead")


def test_while_somebody_else_leads_a_janitor_does_nothing(
    console: Console, ours: Tenant, programs: Programs
) -> None:
    a_console_has_been_serving()
    with psycopg.connect(conninfo(), autocommit=True) as other_session:
        other_session.execute("SELECT pg_advisory_lock(%s)", [LOCK_KEY])
        janitor = programs.janitor()
        job = lose(console, ours, "lost")
        looked_at = Watch.objects.get().looked_at
        wait_until(lambda: "this one waits" in janitor.log, seconds=30, what="a janitor that waits")
        assert not janitor.leads
        assert Watch.objects.get().looked_at == looked_at
        assert fresh(job).status == "CLAIMED"
    janitor.wait_for_lead()


def test_it_ends_when_it_is_told_to(programs: Programs) -> None:
    janitor = programs.janitor()
    janitor.wait_for_lead()
    janitor.stop()
    assert janitor.process is not None
    assert janitor.process.returncode == 0
