"""Claiming: which job a runner is given, that it is given once, and what comes with it."""

from __future__ import annotations

import pytest

from console.accounts.services import set_organization_drain
from console.jobs import queue
from console.jobs.models import Attempt, Job, JobClaim
from console.jobs.queue import NewJob
from runner.protocol import JobType
from specs.snapshot import snapshot_hash
from tests.console_app import Console, claim_in, code_of
from tests.people import Tenant, fresh, new_key


def test_a_queued_job_is_claimed(console: Console, ours: Tenant) -> None:
    job = ours.request()
    claim = console.new_runner(ours).take()
    assert claim.job_id == str(job.pk)
    assert fresh(job).status == "CLAIMED"
    assert fresh(job).attempt_count == 1


def test_with_nothing_queued_there_is_no_content(console: Console, ours: Tenant) -> None:
    runner = console.new_runner(ours)
    answer = runner.post("/api/jobs/claim", json=runner.claim_request())
    assert (answer.status_code, answer.content) == (204, b"")


def test_the_oldest_comes_first(console: Console, ours: Tenant) -> None:
    jobs = [ours.request(spec=ours.new_spec(f"spec-{n}")) for n in range(4)]
    runner = console.new_runner(ours)
    assert [runner.take().job_id for _ in jobs] == [str(job.pk) for job in jobs]


def test_a_higher_priority_comes_before_age(console: Console, ours: Tenant) -> None:
    jobs = [ours.request(spec=ours.new_spec(f"spec-{n}")) for n in range(4)]
    for job, priority in zip(jobs, (0, 5, -1, 5), strict=True):
        Job.objects.filter(pk=job.pk).update(priority=priority)
    runner = console.new_runner(ours)
    assert [runner.take().job_id for _ in jobs] == [str(jobs[n].pk) for n in (1, 3, 0, 2)]


def test_priority_and_age_count_across_the_runners_pools(console: Console, ours: Tenant) -> None:
    second = ours.new_pool("second")
    runner, credential = ours.new_runner()
    runner.pools.add(second)
    old = ours.request(spec=ours.new_spec("old", pool=second))
    young = ours.request(spec=ours.new_spec("young"))
    urgent = ours.request(spec=ours.new_spec("urgent", pool=second))
    Job.objects.filter(pk=urgent.pk).update(priority=1)
    client = console.runner(credential)
    assert [client.take().job_id for _ in range(3)] == [str(job.pk) for job in (urgent, old, young)]


def test_only_jobs_of_its_own_pools(console: Console, ours: Tenant) -> None:
    job = ours.request(spec=ours.new_spec("elsewhere", pool=ours.new_pool("second")))
    assert console.new_runner(ours).claim() is None
    assert fresh(job).status == "QUEUED"


def test_only_jobs_of_its_own_organization(console: Console, ours: Tenant, theirs: Tenant) -> None:
    job = theirs.request()
    assert console.new_runner(ours).claim() is None
    assert fresh(job).status == "QUEUED"


def test_only_the_types_that_it_can_run(console: Console, ours: Tenant) -> None:
    plan = ours.request(JobType.PLAN, spec=ours.new_spec("planned"))
    destroy = ours.request(JobType.DESTROY, spec=ours.new_spec("destroyed"))
    runner = console.new_runner(ours)
    assert runner.claim(types=["CONNECTION_TEST"]) is None
    assert runner.claim(types=[]) is None
    claim = runner.claim(types=["DESTROY"])
    assert claim is not None
    assert claim.job_id == str(destroy.pk)
    assert fresh(plan).status == "QUEUED"


def test_a_job_that_waits_for_its_retry_is_not_handed_out(console: Console, ours: Tenant) -> None:
    runner = console.new_runner(ours)
    ours.request()
    claim = runner.take_and_start()
    assert runner.fail(claim).json()["status"] == "QUEUED"
    assert runner.claim() is None


def test_the_answer_has_everything_that_the_attempt_needs(console: Console, ours: Tenant) -> None:
    job = fresh(ours.request())
    claim = console.new_runner(ours).take()
    assert claim.snapshot == job.config_snapshot
    assert claim.snapshot["files"]["main.tf"]
    assert claim.snapshot_hash == snapshot_hash(claim.snapshot) == job.snapshot_hash
    assert claim.variables == job.config_snapshot["variables"]
    assert (claim.organization, claim.spec, claim.spec_id) == ("ours", "network", str(ours.spec.pk))
    assert (claim.type, claim.job_number, claim.attempt) == ("PLAN", job.number, 1)
    assert (claim.lease_seconds, claim.timeout_seconds) == (120, job.timeout_seconds)
    assert claim.next_log_seq == 1
    assert claim.state is not None
    assert claim.state.address.endswith(f"/api/state/{ours.spec.pk}")
    assert claim.state.password.startswith("sls_")
    assert claim.plan is None


def test_a_claim_opens_a_lease_and_an_attempt(console: Console, ours: Tenant) -> None:
    job = ours.request()
    claim = console.new_runner(ours).take()
    lease, attempt = JobClaim.objects.get(job=job), Attempt.objects.get(job=job)
    assert str(lease.claim_id) == str(attempt.claim_id) == claim.claim_id
    assert (lease.expires_at - lease.heartbeat_at).total_seconds() == 120
    assert (attempt.number, attempt.outcome, attempt.ended_at) == (1, "running", None)


def test_the_same_key_again_gets_the_same_claim(console: Console, ours: Tenant) -> None:
    """The answer was lost on the network; nothing may run twice, and no job may be forgotten."""
    for n in range(2):
        ours.request(spec=ours.new_spec(f"spec-{n}"))
    runner, key = console.new_runner(ours), new_key()
    first, second = runner.claim(key=key), runner.claim(key=key)
    assert first is not None
    assert first == second
    assert Attempt.objects.count() == JobClaim.objects.count() == 1


def test_a_repeated_claim_is_answered_also_while_draining(console: Console, ours: Tenant) -> None:
    ours.request()
    runner, key = console.new_runner(ours), new_key()
    first = runner.claim(key=key)
    set_organization_drain(organization=ours.organization, draining=True, requested_by=ours.admin)
    assert runner.claim(key=key) == first


def test_another_key_gets_another_job(console: Console, ours: Tenant) -> None:
    for n in range(2):
        ours.request(spec=ours.new_spec(f"spec-{n}"))
    runner = console.new_runner(ours)
    assert runner.take().job_id != runner.take().job_id


def test_the_same_key_of_another_runner_is_another_claim(console: Console, ours: Tenant) -> None:
    for n in range(2):
        ours.request(spec=ours.new_spec(f"spec-{n}"))
    key = new_key()
    claims = [console.new_runner(ours, name).claim(key=key) for name in ("first", "second")]
    assert len({claim.claim_id for claim in claims if claim}) == 2


@pytest.mark.parametrize("round", range(5))
def test_two_identical_requests_at_once_get_the_same_claim(
    console: Console, ours: Tenant, round: int
) -> None:
    for n in range(3):
        ours.request(spec=ours.new_spec(f"spec-{n}"))
    credential, key = ours.new_runner()[1], new_key()
    requests = [console.runner(credential).begin_claim(key=key, wait=10) for _ in range(3)]
    claims = [claim_in(request.result(15)) for request in requests]
    assert len({claim.claim_id for claim in claims if claim}) == 1
    assert None not in claims
    assert Attempt.objects.count() == 1


@pytest.mark.parametrize("round", range(5))
def test_two_runners_never_claim_the_same_job(console: Console, ours: Tenant, round: int) -> None:
    ours.request()
    runners = [console.new_runner(ours, f"runner-{n}") for n in range(6)]
    requests = [runner.begin_claim(wait=0) for runner in runners]
    claims = [claim_in(request.result(10)) for request in requests]
    assert len([claim for claim in claims if claim]) == 1


def test_a_job_that_nobody_can_read_fails_and_stands_in_nobodys_way(console: Console, ours: Tenant) -> None:
    unreadable = NewJob(
        organization_id=ours.organization.pk,
        type=JobType.PLAN,
        pool_id=ours.pool.pk,
        config_snapshot={"variables": {"size": 10**400}},
        snapshot_hash="0" * 64,
        max_retries=2,
        timeout_seconds=60,
    )
    assert queue.enqueue(job=unreadable, actor=queue.Actor("system", None, "test")) is not None
    behind = ours.request()
    runner = console.new_runner(ours)
    assert runner.claim() is None
    failed = Job.objects.defer("config_snapshot").get(pk=unreadable.id)
    assert (failed.status, failed.error_code) == ("FAILED", "snapshot_unreadable")
    assert runner.take().job_id == str(behind.pk)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"claim_key": "not-a-uuid", "types": []},
        {"claim_key": new_key()},
        {"claim_key": new_key(), "types": "PLAN"},
        {"claim_key": new_key(), "types": [], "wait_seconds": "long"},
        [],
    ],
)
def test_a_malformed_claim_is_refused(console: Console, ours: Tenant, body: object) -> None:
    answer = console.new_runner(ours).post("/api/jobs/claim", json=body)
    assert (answer.status_code, code_of(answer)) == (400, "invalid_message")


def test_nobody_claims_without_a_credential_that_is_known(console: Console, ours: Tenant) -> None:
    ours.request()
    runner = console.runner("slr_unknown")
    answer = runner.post("/api/jobs/claim", json=runner.claim_request())
    assert (answer.status_code, code_of(answer)) == (401, "runner_unknown")
    token = ours.token_of(ours.operator)
    person = console.with_authorization(f"Bearer {token}").post(
        "/api/jobs/claim", json=runner.claim_request()
    )
    assert person.status_code in (404, 405)
