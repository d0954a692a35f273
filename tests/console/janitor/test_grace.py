"""After the console was away, nobody's lease is taken back before runners had one lease to come back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from console.janitor.models import Watch
from console.janitor.services import is_patient, run_once
from console.jobs.models import Job
from console.live.beat import GONE_AFTER_SECONDS
from console.live.models import ConsoleBeat
from tests.console_app import Console
from tests.database_clock import LEASE, a_console_has_been_serving, let_lease_run_out
from tests.people import Tenant, fresh


@pytest.fixture
def lost(console: Console, ours: Tenant) -> Job:
    """A job whose lease ran out."""
    job = ours.request()
    console.new_runner(ours).take()
    let_lease_run_out(job)
    return job


def patience() -> timedelta:
    watch = Watch.objects.annotate(now=Now()).get()
    assert watch.patient_until is not None
    return watch.patient_until - watch.now


def test_while_a_console_serves_a_lost_job_is_taken_back_at_once(lost: Job) -> None:
    a_console_has_been_serving()
    run_once()
    assert fresh(lost).status == "QUEUED"


def test_the_first_look_ever_is_patient_for_one_lease(lost: Job) -> None:
    run_once()
    assert fresh(lost).status == "CLAIMED"
    assert LEASE - timedelta(seconds=5) < patience() <= LEASE


def test_when_no_janitor_looked_for_a_while_nothing_is_taken_back_for_one_lease(lost: Job) -> None:
    a_console_has_been_serving()
    Watch.objects.update(looked_at=Now() - timedelta(seconds=GONE_AFTER_SECONDS + 1))
    run_once()
    assert fresh(lost).status == "CLAIMED"
    assert LEASE - timedelta(seconds=5) < patience() <= LEASE
    run_once()
    assert fresh(lost).status == "CLAIMED", "patience lasts, it is not one look"
    Watch.objects.update(patient_until=Now() - timedelta(seconds=1))
    run_once()
    assert fresh(lost).status == "QUEUED"


def test_when_no_console_served_nothing_is_taken_back_for_one_lease(lost: Job) -> None:
    """The janitor ran on, but runners had nobody to renew their leases with."""
    a_console_has_been_serving()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE live_consolebeat IN SHARE ROW EXCLUSIVE MODE")  # ours beats on its own
        ConsoleBeat.objects.update(beat_at=Now() - timedelta(seconds=GONE_AFTER_SECONDS + 1))
        assert is_patient()
    assert LEASE - timedelta(seconds=5) < patience() <= LEASE
    ConsoleBeat.objects.create(beat_at=Now())
    run_once()
    assert fresh(lost).status == "CLAIMED", "a console is back, and runners have a lease to come back"


def test_a_short_pause_of_the_janitor_costs_no_patience(lost: Job) -> None:
    a_console_has_been_serving()
    Watch.objects.update(looked_at=Now() - timedelta(seconds=GONE_AFTER_SECONDS - 5))
    run_once()
    assert fresh(lost).status == "QUEUED"


def test_a_runner_that_comes_back_within_its_grace_finishes(console: Console, ours: Tenant) -> None:
    job, runner = ours.request(), console.new_runner(ours)
    claim = runner.take_and_start()
    let_lease_run_out(job)
    run_once()
    runner.beat(claim)
    Watch.objects.update(patient_until=Now() - timedelta(seconds=1))
    run_once()
    assert runner.succeed(claim).json() == {"status": "SUCCESS"}
