"""Clocks apart by an hour: only the database's decides, whatever runner and console believe."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from console.janitor.services import run_once
from console.jobs.models import JobClaim
from tests.console_app import Console
from tests.database_clock import a_console_has_been_serving
from tests.people import Tenant, fresh

hours_apart = pytest.mark.parametrize("hours", [-1, 1])


@hours_apart
def test_a_runners_clock_does_not_matter(console: Console, ours: Tenant, hours: int) -> None:
    """Its times are what it says of its own lines, and decide nothing."""
    a_console_has_been_serving()
    job, runner = ours.request(), console.new_runner(ours)
    claim = runner.take_and_start()
    said_at = (datetime.now(UTC) + timedelta(hours=hours)).isoformat()
    lines = [{"at": said_at, "level": "info", "message": text} for text in ("one", "two")]
    assert runner.log_lines(claim, 1, lines).status_code == 200
    runner.beat(claim)
    run_once()
    assert fresh(job).status == "PROCESSING"
    assert runner.succeed(claim).json() == {"status": "SUCCESS"}
    read = console.person(ours, "viewer").get(f"/api/jobs/{job.pk}/logs").json()["data"]
    assert [(line["seq"], line["at"]) for line in read] == [(1, said_at), (2, said_at)]


@hours_apart
def test_the_consoles_clock_does_not_matter(
    console: Console, ours: Tenant, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """A console whose clock is an hour off gives the same leases and takes none back."""
    a_console_has_been_serving()
    job, (runner, credential) = ours.request(), ours.new_runner()
    client, now = console.runner(credential), timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(hours=hours))
    claim = client.take_and_start()
    client.beat(claim)
    lease = JobClaim.objects.get()
    assert abs((lease.heartbeat_at - datetime.now(UTC)).total_seconds()) < 30
    assert (lease.expires_at - lease.heartbeat_at).total_seconds() == 120
    run_once()
    assert fresh(job).status == "PROCESSING"
    runner.refresh_from_db()
    assert runner.status == "ONLINE"
    assert client.succeed(claim).json() == {"status": "SUCCESS"}
    ended = fresh(job)
    assert ended.finished_at is not None
    assert ended.created_at <= ended.finished_at
