"""A job's life driven at random: whatever happens in whatever order, the invariants hold.

The long form runs with `LONG_MODEL_TEST=1`.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import F
from django.db.models.functions import Now
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from console.accounts.services import set_organization_drain
from console.errors import Conflict, Draining, JobActive, StaleClaim
from console.janitor.services import end_timed_out_jobs, request_timeouts, take_back_lost_jobs
from console.jobs.models import Attempt, Job, JobClaim, LogChunk
from console.jobs.services import cancel_job, request_job, retry_job
from console.jobs.types import KINDS
from runner.protocol import Claim, JobType
from specs.models import Spec
from tests.concurrency.attempting import Worker
from tests.database_clock import let_lease_run_out
from tests.people import Tenant, make_tenant, some_uuid

LONG = os.environ.get("LONG_MODEL_TEST") == "1"
#: DEPLOY is driven by the plans that it needs, elsewhere.
TYPES = [type for type in JobType if type != JobType.DEPLOY]


@dataclass
class Given:
    """A claim as its runner remembers it, long after the console may have taken it back."""

    worker: Worker
    claim: Claim
    next_seq: int
    log: list[str] = field(default_factory=list)


class JobQueue(RuleBasedStateMachine):
    claims = Bundle("claims")

    @initialize()
    def open_shop(self) -> None:
        self.tenant: Tenant = make_tenant(f"model-{some_uuid().hex}")
        self.specs: list[Spec] = [self.tenant.new_spec(f"spec-{n}") for n in range(3)]
        self.workers = [Worker.of(self.tenant, f"worker-{n}") for n in range(3)]
        self.draining = False
        self.final: dict[Any, dict[str, Any]] = {}
        self.attempts: dict[Any, int] = {}

    # ── people ──────────────────────────────────────────────────────────────────────────────────

    @rule(spec=st.integers(0, 2), type=st.sampled_from(TYPES))
    def request(self, spec: int, type: JobType) -> None:
        active = self.jobs().filter(spec=self.specs[spec]).exclude(finished_at__isnull=False).exists()
        try:
            request_job(spec=self.specs[spec], type=type, requested_by=self.tenant.operator)
        except Draining:
            assert self.draining
        except JobActive:
            assert active
        else:
            assert not active
            assert not self.draining

    @rule(number=st.integers(1, 20), force=st.booleans())
    def cancel(self, number: int, force: bool) -> None:
        job = self.jobs().filter(number=number).first()
        if job is None:
            return
        was_final = job.is_final
        try:
            cancelled = cancel_job(job=job, requested_by=self.tenant.operator, force=force)
        except Conflict:
            assert was_final
        else:
            assert not was_final
            assert cancelled.is_final or not force
            assert cancelled.cancelled_by is not None

    @rule(number=st.integers(1, 20))
    def retry(self, number: int) -> None:
        job = self.jobs().filter(number=number).first()
        if job is None:
            return
        try:
            again = retry_job(job=job, requested_by=self.tenant.second_operator)
        except (Conflict, Draining):
            return
        assert again.snapshot_hash == job.snapshot_hash
        assert again.retry_of_id == job.pk

    @rule(draining=st.booleans())
    def drain(self, draining: bool) -> None:
        set_organization_drain(
            organization=self.tenant.organization, draining=draining, requested_by=self.tenant.admin
        )
        self.draining = draining

    # ── runners ─────────────────────────────────────────────────────────────────────────────────

    @rule(target=claims, worker=st.integers(0, 2))
    def claim(self, worker: int) -> Any:
        claim = self.workers[worker].claim()
        if claim is None:
            return multiple()
        assert not self.draining
        return Given(self.workers[worker], claim, claim.next_log_seq)

    @rule(handed=claims)
    def start(self, handed: Given) -> None:
        self.say(handed, lambda: handed.worker.start(handed.claim))

    @rule(handed=claims)
    def heartbeat(self, handed: Given) -> None:
        self.say(handed, lambda: handed.worker.beat(handed.claim))

    @rule(handed=claims, count=st.integers(1, 3), repeat=st.booleans())
    def log(self, handed: Given, count: int, repeat: bool) -> None:
        first, messages = handed.next_seq, [f"{handed.claim.claim_id} {n}" for n in range(count)]
        if not self.say(handed, lambda: handed.worker.log(handed.claim, first, *messages)):
            return
        handed.next_seq += count
        if repeat:
            assert handed.worker.log(handed.claim, first, *messages) == handed.next_seq

    @rule(
        handed=consumes(claims),
        status=st.sampled_from(["SUCCESS", "FAILED", "CANCELLED"]),
        fatal=st.booleans(),
        repeat=st.booleans(),
    )
    def finish(self, handed: Given, status: str, fatal: bool, repeat: bool) -> None:
        held = self.is_held(handed)
        started = self.status_of(handed) == "PROCESSING"
        report = {"error_code": "broken", "fatal": fatal} if status == "FAILED" else {}
        try:
            answer = handed.worker.report(handed.claim, status, **report)
        except StaleClaim:
            assert not held
            return
        except Conflict:
            assert held
            assert not started
            assert status == "SUCCESS"
            return
        assert held
        assert answer == self.status_of(handed)
        if repeat:
            assert handed.worker.report(handed.claim, status, **report) == answer

    # ── time and the janitor ────────────────────────────────────────────────────────────────────

    @rule(handed=claims)
    def let_its_lease_run_out(self, handed: Given) -> None:
        if self.is_held(handed):
            let_lease_run_out(handed.claim.job_id)

    @rule(handed=claims)
    def let_its_time_pass(self, handed: Given) -> None:
        longest = max(kind.timeout_seconds for kind in KINDS.values())
        if self.is_held(handed):
            Job.objects.filter(pk=handed.claim.job_id).update(
                claimed_at=F("claimed_at") - timedelta(seconds=longest),
                cancel_requested_at=F("cancel_requested_at") - timedelta(hours=1),
            )

    @rule()
    def let_retry_waits_pass(self) -> None:
        self.jobs().filter(status="QUEUED").update(run_after=Now())

    @rule()
    def look(self) -> None:
        request_timeouts()
        take_back_lost_jobs()
        end_timed_out_jobs()

    # ── what always holds ───────────────────────────────────────────────────────────────────────

    @invariant()
    def everything_holds(self) -> None:
        """Read in four queries, since this runs after every step."""
        jobs = list(self.jobs().order_by("number"))
        self.claim_of = {claim.job_id: claim for claim in JobClaim.objects.filter(job__in=jobs)}
        self.attempts_of = group(Attempt.objects.filter(job__in=jobs).order_by("number"))
        self.chunks_of = group(LogChunk.objects.filter(job__in=jobs).order_by("first_seq"))
        for job in jobs:
            self.a_claim_stands_exactly_while_a_runner_has_it(job)
            self.final_is_final(job)
            self.attempts_only_grow(job)
            self.log_lines_are_contiguous(job)
            assert not (job.status == "QUEUED" and job.cancel_requested_at), "it was asked to stop"
        active = [job.spec_id for job in jobs if not job.is_final]
        assert len(active) == len(set(active)), "a Spec has at most one active job, so at most one claim"

    def a_claim_stands_exactly_while_a_runner_has_it(self, job: Job) -> None:
        claimed = job.pk in self.claim_of
        assert claimed == (job.status in ("CLAIMED", "PROCESSING")), (job, job.status)
        running = [attempt for attempt in self.attempts_of[job.pk] if attempt.outcome == "running"]
        assert len(running) == int(claimed), "an attempt runs exactly while its claim stands"

    def final_is_final(self, job: Job) -> None:
        if job.is_final:
            now = {name: value for name, value in vars(job).items() if name != "_state"}
            assert self.final.setdefault(job.pk, now) == now

    def attempts_only_grow(self, job: Job) -> None:
        numbers = [attempt.number for attempt in self.attempts_of[job.pk]]
        assert numbers == list(range(1, job.attempt_count + 1))
        assert job.attempt_count >= self.attempts.get(job.pk, 0)
        self.attempts[job.pk] = job.attempt_count
        assert job.retry_count <= job.max_retries

    def log_lines_are_contiguous(self, job: Job) -> None:
        expected = 1
        for chunk in self.chunks_of[job.pk]:
            assert chunk.first_seq == expected
            assert chunk.line_count == len(chunk.lines.split("\n"))
            expected += chunk.line_count
        claim = self.claim_of.get(job.pk)
        assert expected == (claim.log_next_seq if claim else job.log_next_seq)

    # ── how ─────────────────────────────────────────────────────────────────────────────────────

    def jobs(self) -> Any:
        tenant = getattr(self, "tenant", None)
        return Job.objects.filter(organization=tenant.organization) if tenant else Job.objects.none()

    def is_held(self, handed: Given) -> bool:
        return JobClaim.objects.filter(claim_id=handed.claim.claim_id).exists()

    def status_of(self, handed: Given) -> str:
        return Job.objects.values_list("status", flat=True).get(pk=handed.claim.job_id)

    def say(self, handed: Given, request: Any) -> bool:
        """Send a request, which is accepted exactly when the claim stands; return whether it was."""
        held = self.is_held(handed)
        try:
            request()
        except StaleClaim:
            assert not held
            return False
        assert held
        return True


def group(rows: Any) -> dict[Any, list[Any]]:
    """The rows of each job."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        groups[row.job_id].append(row)
    return groups


def test_whatever_happens_the_invariants_hold(transactional_db: None) -> None:
    run_state_machine_as_test(
        JobQueue,
        settings=settings(
            max_examples=1_000 if LONG else 30,
            stateful_step_count=100 if LONG else 40,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
