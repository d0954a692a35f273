"""Runners that are not heard of for a minute are offline, and back with their next word."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from console.audit.models import AuditEvent
from console.janitor.services import run_once
from console.jobs.models import JobClaim
from console.runners.models import Runner
from console.runners.presence import mark_silent_runners_offline
from console.runners.services import recognize
from tests.console_app import Console
from tests.database_clock import a_console_has_been_serving, let_runner_be_silent
from tests.people import Tenant, fresh


@pytest.fixture
def runner(ours: Tenant) -> Runner:
    return ours.new_runner("worker")[0]


def status(runner: Runner) -> str:
    return Runner.objects.get(pk=runner.pk).status


def test_a_minute_without_contact_is_offline(runner: Runner) -> None:
    let_runner_be_silent(runner, timedelta(seconds=59))
    assert mark_silent_runners_offline() == []
    assert status(runner) == "ONLINE"
    let_runner_be_silent(runner, timedelta(seconds=61))
    run_once()
    assert status(runner) == "OFFLINE"
    assert AuditEvent.objects.filter(target_id=runner.pk, action="runner.went_offline").count() == 1
    run_once()
    assert AuditEvent.objects.filter(action="runner.went_offline").count() == 1


def test_a_heartbeat_of_a_job_is_contact(console: Console, ours: Tenant, runner: Runner) -> None:
    ours.request()
    credential = ours.new_runner("second")[1]
    console.runner(credential).take()
    second = recognize(credential)
    Runner.objects.update(last_contact_at=Now() - timedelta(hours=1))
    JobClaim.objects.update(heartbeat_at=Now())
    run_once()
    assert status(runner) == "OFFLINE"
    assert Runner.objects.get(pk=second.id).status == "ONLINE"


def test_the_next_word_brings_it_back(console: Console, ours: Tenant) -> None:
    runner, credential = ours.new_runner("worker")
    let_runner_be_silent(runner, timedelta(minutes=5))
    run_once()
    console.runner(credential).claim()
    assert status(runner) == "ONLINE"
    assert mark_silent_runners_offline() == []


def test_contact_is_not_written_at_every_word(console: Console, ours: Tenant) -> None:
    runner, credential = ours.new_runner("worker")
    client = console.runner(credential)
    client.claim()
    before = Runner.objects.get(pk=runner.pk).last_contact_at
    client.claim()
    assert Runner.objects.get(pk=runner.pk).last_contact_at == before


def test_losing_contact_takes_no_job_away_before_its_lease_ends(console: Console, ours: Tenant) -> None:
    """Leases are trusted, not the status of a runner."""
    a_console_has_been_serving()
    job = ours.request()
    runner, credential = ours.new_runner("worker")
    console.runner(credential).take_and_start()
    let_runner_be_silent(runner, timedelta(seconds=90))
    run_once()
    assert status(runner) == "OFFLINE"
    assert fresh(job).status == "PROCESSING"
