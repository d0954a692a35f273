"""Draining: nothing new is taken or handed out, and what runs finishes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from console.accounts.services import set_installation_drain, set_organization_drain
from console.jobs.models import Job
from console.runners.models import Runner
from console.runners.services import set_runner_drain
from specs.selectors import current_revision
from specs.snapshot import snapshot_hash
from tests.console_app import Console, claim_in, code_of
from tests.people import Tenant, fresh

Drain = Callable[[Tenant, bool], None]


def drain_organization(ours: Tenant, draining: bool) -> None:
    set_organization_drain(organization=ours.organization, draining=draining, requested_by=ours.admin)


def drain_installation(ours: Tenant, draining: bool) -> None:
    set_installation_drain(draining=draining)


both = pytest.mark.parametrize("drain", [drain_organization, drain_installation])


@both
def test_submissions_are_told_to_come_back_later(console: Console, ours: Tenant, drain: Drain) -> None:
    operator, request = console.person(ours, "operator"), {"spec": str(ours.spec.pk), "type": "PLAN"}
    drain(ours, True)
    answer = operator.post("/api/jobs", json=request)
    assert (answer.status_code, code_of(answer)) == (503, "draining")
    assert int(answer.headers["Retry-After"]) > 0
    assert not Job.objects.exists()
    drain(ours, False)
    assert operator.post("/api/jobs", json=request).status_code == 202


@both
def test_a_retry_click_is_refused_too(console: Console, ours: Tenant, drain: Drain) -> None:
    job = ours.request()
    operator = console.person(ours, "operator")
    operator.post(f"/api/jobs/{job.pk}/cancel")
    drain(ours, True)
    assert operator.post(f"/api/jobs/{job.pk}/retry").status_code == 503


@both
def test_claims_come_back_empty(console: Console, ours: Tenant, drain: Drain) -> None:
    job, runner = ours.request(), console.new_runner(ours)
    drain(ours, True)
    assert runner.claim() is None
    drain(ours, False)
    assert runner.take().job_id == str(job.pk)


@both
def test_a_held_claim_stays_empty_although_a_job_waits(console: Console, ours: Tenant, drain: Drain) -> None:
    runner = console.new_runner(ours)
    drain(ours, True)
    held = runner.begin_claim(wait=0.5)
    job_from_before_the_drain(ours)
    assert claim_in(held.result(10)) is None


def job_from_before_the_drain(ours: Tenant) -> Job:
    """A job that was accepted in the moment before the drain began: it is put in directly."""
    document = current_revision(ours.spec).document
    return Job.objects.create(
        organization=ours.organization,
        number=1,
        type="PLAN",
        spec=ours.spec,
        pool=ours.pool,
        config_snapshot=document,
        snapshot_hash=snapshot_hash(document),
        max_retries=0,
        timeout_seconds=60,
    )


def test_a_held_claim_is_served_as_soon_as_the_drain_ends(console: Console, ours: Tenant) -> None:
    job, runner = ours.request(), console.new_runner(ours)
    drain_organization(ours, True)
    held = runner.begin_claim(wait=20)
    drain_organization(ours, False)
    claim = claim_in(held.result(4))  # the slow look comes after 5 s, so this was the notification
    assert claim is not None
    assert claim.job_id == str(job.pk)


@both
def test_what_runs_is_told_and_finishes(console: Console, ours: Tenant, drain: Drain) -> None:
    job, runner = ours.request(), console.new_runner(ours)
    claim = runner.take_and_start()
    drain(ours, True)
    assert runner.beat(claim).drain
    assert runner.log(claim, 1, "still going").status_code == 200
    assert runner.succeed(claim).status_code == 200
    assert fresh(job).status == "SUCCESS"


def test_another_organization_is_not_drained(console: Console, ours: Tenant, theirs: Tenant) -> None:
    drain_organization(ours, True)
    job = theirs.request()
    assert console.new_runner(theirs).take().job_id == str(job.pk)


def drain_runner(ours: Tenant, draining: bool) -> None:
    runner = Runner.objects.get(name="draining")
    set_runner_drain(runner=runner, draining=draining, requested_by=ours.admin)


def test_a_draining_runner_is_given_nothing_and_another_is(console: Console, ours: Tenant) -> None:
    job = ours.request()
    draining, other = console.new_runner(ours, "draining"), console.new_runner(ours, "other")
    drain_runner(ours, True)
    assert draining.claim() is None
    assert other.take().job_id == str(job.pk)


def test_what_a_draining_runner_has_it_finishes_and_it_goes_on_when_the_drain_ends(
    console: Console, ours: Tenant
) -> None:
    job, runner = ours.request(), console.new_runner(ours, "draining")
    claim = runner.take_and_start()
    drain_runner(ours, True)
    assert runner.beat(claim).drain
    assert runner.succeed(claim).status_code == 200
    assert fresh(job).status == "SUCCESS"
    waiting = ours.request()
    held = runner.begin_claim(wait=20)
    drain_runner(ours, False)
    claimed = claim_in(held.result(4))  # the slow look comes after 5 s, so this was the notification
    assert claimed is not None
    assert claimed.job_id == str(waiting.pk)
    assert not runner.beat(claimed).drain


def test_only_an_admin_drains_a_runner_and_it_is_on_record_once(console: Console, ours: Tenant) -> None:
    console.new_runner(ours, "draining")
    runner = Runner.objects.get()
    path = f"/api/organizations/ours/runners/{runner.pk}/drain"
    assert console.person(ours, "operator").put(path, json={"draining": True}).status_code == 403
    assert console.person(ours, "admin").put(path, json={}).status_code == 400
    for _ in range(2):
        assert console.person(ours, "admin").put(path, json={"draining": True}).status_code == 204
    since = Runner.objects.get().draining_since
    assert since is not None
    assert console.person(ours, "admin").put(path, json={"draining": False}).status_code == 204
    assert Runner.objects.get().draining_since is None
    actions = ours.organization.audit_events.filter(action__startswith="runner.drain").values_list(
        "action", flat=True
    )
    assert sorted(actions) == ["runner.drain_ended", "runner.drain_started"]


def test_another_organizations_runner_cannot_be_drained(
    console: Console, ours: Tenant, theirs: Tenant
) -> None:
    console.new_runner(theirs)
    path = f"/api/organizations/ours/runners/{Runner.objects.get().pk}/drain"
    assert console.person(ours, "admin").put(path, json={"draining": True}).status_code == 404
    assert Runner.objects.get().draining_since is None


def test_whoever_registers_by_a_draining_runners_name_is_another(console: Console, ours: Tenant) -> None:
    console.new_runner(ours, "draining")
    drain_runner(ours, True)
    Runner.objects.update(status="OFFLINE")
    job, again = ours.request(), console.new_runner(ours, "draining")
    assert again.take().job_id == str(job.pk)


def test_only_an_admin_drains_and_it_is_on_record(console: Console, ours: Tenant) -> None:
    path = "/api/organizations/ours/drain"
    assert console.person(ours, "operator").put(path, json={"draining": True}).status_code == 403
    assert console.person(ours, "admin").put(path, json={"draining": True}).json()["draining"] is True
    assert ours.organization.audit_events.filter(action="organization.drain_started").count() == 1
    assert (
        console.person(ours, "operator")
        .post("/api/jobs", json={"spec": str(ours.spec.pk), "type": "PLAN"})
        .status_code
        == 503
    )
