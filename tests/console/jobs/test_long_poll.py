"""Held claim requests: woken by the job, bounded by the console, refused once the runner is revoked."""

from __future__ import annotations

import time

import pytest

from console.janitor.services import take_back_lost_jobs
from console.jobs import wire
from console.live.listener import listener
from console.live.publish import publisher
from console.runners.models import Runner
from console.runners.services import revoke_runner
from tests.console_app import Console, claim_in, code_of
from tests.database_clock import let_lease_run_out
from tests.people import Tenant
from tests.waiting import wait_until


@pytest.fixture
def slow_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a notification nothing would be seen before the test gives up."""
    monkeypatch.setattr(wire, "LOOK_AGAIN_SECONDS", 60.0)


def wait_until_it_is_held(console: Console) -> None:
    """Wait until the console listens for a held request."""

    async def listening() -> bool:
        return bool(listener()._subscriptions) and listener()._ready.is_set()

    wait_until(lambda: console.background.run(listening()), what="a held request")


@pytest.mark.usefixtures("slow_looks")
def test_a_new_job_wakes_a_held_claim(console: Console, ours: Tenant) -> None:
    held = console.new_runner(ours).begin_claim(wait=20)
    wait_until_it_is_held(console)
    job = ours.request()
    claim = claim_in(held.result(4))
    assert claim is not None
    assert claim.job_id == str(job.pk)


@pytest.mark.usefixtures("slow_looks")
def test_a_lost_jobs_return_to_the_queue_wakes_a_held_claim(console: Console, ours: Tenant) -> None:
    job = ours.request()
    console.new_runner(ours, "lost").take()
    held = console.new_runner(ours, "waiting").begin_claim(wait=20)
    wait_until_it_is_held(console)
    let_lease_run_out(job)
    take_back_lost_jobs()
    claim = claim_in(held.result(4))
    assert claim is not None
    assert (claim.job_id, claim.attempt) == (str(job.pk), 2)


def test_a_lost_notification_costs_latency_only(
    console: Console, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "LOOK_AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(publisher, "publish", lambda topics: None)
    held = console.new_runner(ours).begin_claim(wait=20)
    job = ours.request()
    claim = claim_in(held.result(4))
    assert claim is not None
    assert claim.job_id == str(job.pk)


def test_the_wait_ends_empty(console: Console, ours: Tenant) -> None:
    began = time.monotonic()
    assert claim_in(console.new_runner(ours).begin_claim(wait=0.3).result(10)) is None
    assert time.monotonic() - began >= 0.3


def test_the_console_bounds_the_wait(console: Console, ours: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_WAIT_SECONDS", 0.2)
    assert claim_in(console.new_runner(ours).begin_claim(wait=3_600).result(10)) is None


def test_no_wait_is_longer_than_proxies_allow() -> None:
    assert wire.MAX_WAIT_SECONDS <= 30


def test_a_runner_that_is_revoked_while_it_waits_is_refused(
    console: Console, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = console.new_runner(ours).begin_claim(wait=20)
    wait_until_it_is_held(console)
    revoke_runner(runner=Runner.objects.get(), revoked_by=ours.admin)
    ours.request()
    answer = held.result(8)
    assert (answer.status_code, code_of(answer)) == (401, "runner_unknown")


@pytest.mark.usefixtures("slow_looks")
def test_one_job_is_given_to_one_of_many_who_wait(console: Console, ours: Tenant) -> None:
    held = [console.new_runner(ours, f"runner-{n}").begin_claim(wait=1.5) for n in range(5)]
    wait_until_it_is_held(console)
    ours.request()
    claims = [claim_in(request.result(10)) for request in held]
    assert len([claim for claim in claims if claim]) == 1
