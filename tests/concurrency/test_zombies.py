"""A runner that comes back from the dead: whatever it says about its old attempt is refused."""

from __future__ import annotations

from typing import Any

import pytest

from console.errors import StaleClaim
from console.janitor.services import take_back_lost_jobs
from console.jobs.models import Attempt, Job, LogChunk
from runner.protocol import Claim, JobType
from tests.concurrency.attempting import Worker
from tests.concurrency.threads import outcomes
from tests.database_clock import let_lease_run_out, let_retry_wait_pass
from tests.people import Tenant, fresh


@pytest.fixture
def zombie(ours: Tenant) -> Worker:
    return Worker.of(ours, "zombie")


@pytest.fixture
def successor(ours: Tenant) -> Worker:
    return Worker.of(ours, "successor")


def hand_over(job: Job, zombie: Worker, successor: Worker) -> tuple[Claim, Claim]:
    old = zombie.take_and_start()
    zombie.log(old, 1, "before")
    let_lease_run_out(job)
    take_back_lost_jobs()
    let_retry_wait_pass(job)
    return old, successor.take_and_start()


def stored(job: Job) -> list[Any]:
    return [
        list(Job.objects.filter(pk=job.pk).values()),
        list(Attempt.objects.filter(job=job).order_by("number").values()),
        list(LogChunk.objects.filter(job=job).values_list("first_seq", "lines")),
    ]


def test_its_completion_log_and_heartbeat_are_all_refused(
    ours: Tenant, zombie: Worker, successor: Worker
) -> None:
    job = ours.request()
    old, new = hand_over(job, zombie, successor)
    before = stored(job)
    for say in (
        lambda: zombie.report(old, "SUCCESS", result={"zombie": True}),
        lambda: zombie.report(old, "FAILED"),
        lambda: zombie.report(old, "CANCELLED"),
        lambda: zombie.log(old, 2, "after"),
        lambda: zombie.beat(old),
        lambda: zombie.start(old),
    ):
        with pytest.raises(StaleClaim):
            say()
    assert stored(job) == before
    assert successor.log(new, 2, "of the successor") == 3
    assert successor.report(new, "SUCCESS", result={"zombie": False}) == "SUCCESS"
    assert fresh(job).result == {"zombie": False}


def test_after_the_successor_has_finished_it_is_still_refused(
    ours: Tenant, zombie: Worker, successor: Worker
) -> None:
    job = ours.request()
    old, new = hand_over(job, zombie, successor)
    successor.report(new, "SUCCESS")
    with pytest.raises(StaleClaim):
        zombie.report(old, "FAILED")
    assert fresh(job).status == "SUCCESS"


@pytest.mark.parametrize("round", range(8))
def test_zombie_and_successor_report_at_once(
    ours: Tenant, zombie: Worker, successor: Worker, round: int
) -> None:
    job = ours.request()
    old, new = hand_over(job, zombie, successor)
    answers = outcomes(
        [
            lambda: zombie.report(old, "FAILED", error_code="zombie"),
            lambda: zombie.log(old, 2, "of the zombie"),
            lambda: successor.report(new, "SUCCESS"),
        ],
        StaleClaim,
    )
    assert answers == [False, False, True]
    assert (fresh(job).status, fresh(job).error_code, fresh(job).log_next_seq) == ("SUCCESS", "", 2)


def test_a_lost_deploy_is_not_finished_by_its_zombie(ours: Tenant, zombie: Worker) -> None:
    job = ours.request(JobType.DESTROY)
    old = zombie.take_and_start()
    let_lease_run_out(job)
    take_back_lost_jobs()
    with pytest.raises(StaleClaim):
        zombie.report(old, "SUCCESS")
    assert (fresh(job).status, fresh(job).error_code) == ("FAILED", "runner_lost")
