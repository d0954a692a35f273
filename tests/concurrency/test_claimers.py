"""Sixteen claimers and three thousand jobs over twenty Specs: each claimed once. (The slow one here.)"""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from django.db import connection

from console.jobs.models import Attempt, Job, JobClaim
from console.jobs.services import request_plan
from specs.models import Spec
from tests.concurrency.attempting import Worker
from tests.concurrency.threads import race
from tests.people import Tenant

CLAIMERS, JOBS, SPECS = 16, 3_000, 20


class Orders:
    """Keeps every Spec busy: as one job of it finishes, the next is requested, until there were enough."""

    def __init__(self, ours: Tenant) -> None:
        self._ours = ours
        self._specs = {str(spec.pk): spec for spec in (ours.new_spec(f"spec-{n}") for n in range(SPECS))}
        self._left = JOBS
        self._lock = threading.Lock()
        self.done = threading.Event()
        self.finished = 0

    def begin(self) -> None:
        for spec in self._specs.values():
            self._ask(spec)

    def finish(self, spec_id: str) -> None:
        with self._lock:
            self.finished += 1
            if self.finished == JOBS:
                self.done.set()
        self._ask(self._specs[spec_id])

    def _ask(self, spec: Spec) -> None:
        with self._lock:
            if self._left == 0:
                return
            self._left -= 1
        request_plan(spec=spec, requested_by=self._ours.operator)


def work(worker: Worker, orders: Orders) -> list[str]:
    """Claim and finish until all is done, and return the ids of this worker's jobs."""
    job_ids = []
    while not orders.done.is_set():
        claim = worker.claim()
        if claim is None:
            orders.done.wait(0.005)
            continue
        job_ids.append(claim.job_id)
        worker.start(claim)
        assert worker.report(claim, "SUCCESS") == "SUCCESS"
        assert claim.spec_id is not None
        orders.finish(claim.spec_id)
    return job_ids


@pytest.mark.timeout(240)
def test_each_of_three_thousand_jobs_is_claimed_once_by_sixteen_claimers(ours: Tenant) -> None:
    orders = Orders(ours)
    workers = [Worker.of(ours, f"runner-{n}") for n in range(CLAIMERS)]
    orders.begin()
    job_ids = race(*(lambda worker=worker: work(worker, orders) for worker in workers))
    times_given = Counter(job_id for jobs in job_ids for job_id in jobs)
    assert len(times_given) == JOBS
    assert set(times_given.values()) == {1}
    assert set(Job.objects.values_list("status", "attempt_count")) == {("SUCCESS", 1)}
    assert Attempt.objects.filter(outcome="succeeded").count() == JOBS
    assert not JobClaim.objects.exists()
    assert _never_two_at_once()


def _never_two_at_once() -> bool:
    """No two attempts of one Spec overlapped, by the database's own clock."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT count(*) FROM (
                SELECT attempt.claimed_at, lag(attempt.ended_at) OVER (
                    PARTITION BY job.spec_id ORDER BY attempt.claimed_at) AS ended_before
                FROM jobs_attempt AS attempt JOIN jobs_job AS job ON job.id = attempt.job_id
            ) AS following WHERE claimed_at < ended_before
            """
        )
        return bool(cursor.fetchone() == (0,))
