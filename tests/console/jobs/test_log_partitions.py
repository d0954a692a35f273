"""Log retention: partitions are made ahead and dropped whole, never deleted from."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from pytest_django import Settings

from console.jobs.log.partitions import (
    EXISTING,
    WEEK,
    WEEKS_AHEAD,
    create_statement,
    keep_partitions,
    partition,
    week_of,
)
from console.jobs.models import LogChunk
from tests.console_app import Console
from tests.people import Tenant

THIS_WEEK = week_of(datetime.now(UTC).date())


def partitions() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(EXISTING)
        return {name for (name,) in cursor.fetchall()}


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture(autouse=True)
def partitions_as_before(transactional_db: None) -> Iterator[None]:
    yield
    keep_partitions()


def test_partitions_are_made_weeks_ahead() -> None:
    run(f"DROP TABLE {partition(THIS_WEEK + 3 * WEEK)}, {partition(THIS_WEEK + 4 * WEEK)}")
    keep_partitions()
    ahead = {partition(THIS_WEEK + WEEK * offset) for offset in range(WEEKS_AHEAD + 1)}
    assert ahead <= partitions()


def test_keeping_twice_is_keeping_once() -> None:
    keep_partitions()
    before = partitions()
    keep_partitions()
    assert partitions() == before


def test_partitions_past_their_time_are_dropped_and_younger_ones_kept(settings: Settings) -> None:
    settings.SLIPWAY_LOG_RETENTION_DAYS = 30
    old = week_of(THIS_WEEK - timedelta(days=45))
    young = week_of(THIS_WEEK - timedelta(days=21))
    for week in (old, young):
        run(create_statement(week))
    keep_partitions()
    assert partition(old) not in partitions()
    assert partition(young) in partitions()
    assert "jobs_logchunk_default" in partitions()
    run(f"DROP TABLE {partition(young)}")


def test_no_line_is_dropped_before_its_time(settings: Settings) -> None:
    """A partition goes when its youngest possible line is past retention."""
    settings.SLIPWAY_LOG_RETENTION_DAYS = 30
    edge = week_of(datetime.now(UTC).date() - timedelta(days=30))
    run(create_statement(edge))
    keep_partitions()
    assert partition(edge) in partitions()
    run(f"DROP TABLE {partition(edge)}")


def test_new_lines_go_to_this_weeks_partition(console: Console, ours: Tenant) -> None:
    ours.request()
    runner = console.new_runner(ours)
    claim = runner.take_and_start()
    runner.log(claim, 1, "one")
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM jobs_logchunk WHERE job_id = %s", [claim.job_id])
        assert cursor.fetchall() == [(partition(THIS_WEEK),)]


def test_lines_are_kept_even_when_no_partition_was_made_for_them(console: Console, ours: Tenant) -> None:
    ours.request()
    runner = console.new_runner(ours)
    claim = runner.take_and_start()
    LogChunk.objects.all().delete()
    run(f"DROP TABLE {partition(THIS_WEEK)}")
    assert runner.log(claim, 1, "one").status_code == 200
    assert LogChunk.objects.filter(job_id=claim.job_id).count() == 1


def test_a_partition_is_made_although_the_default_one_has_lines_of_its_week(
    console: Console, ours: Tenant
) -> None:
    """The janitor was away for longer than partitions had been made ahead."""
    ours.request()
    runner = console.new_runner(ours)
    claim = runner.take_and_start()
    LogChunk.objects.all().delete()
    run(f"DROP TABLE {partition(THIS_WEEK)}")
    runner.log(claim, 1, "one")
    keep_partitions()
    assert partition(THIS_WEEK) in partitions()
    assert runner.log(claim, 2, "two").status_code == 200
    assert LogChunk.objects.filter(job_id=claim.job_id).count() == 2
