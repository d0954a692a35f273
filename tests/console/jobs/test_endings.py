"""Every ending, as it really comes about: each runs the hooks once, in its own transaction."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from console.audit.models import AuditEvent
from console.errors import SlipwayError
from console.identities.jobs import request_connection_test
from console.identities.services import Allowed, change_identity
from console.janitor.services import (
    TIMEOUT_GRACE_SECONDS,
    end_timed_out_jobs,
    request_timeouts,
    take_back_lost_jobs,
)
from console.jobs import hooks
from console.jobs.lifecycle import MOVES, is_final
from console.jobs.models import Attempt, Job, JobClaim
from console.jobs.services import cancel_job
from console.jobs.types import KINDS
from runner.protocol import Claim, JobStatus, JobType
from tests.console.identities.identities_made import new_identity
from tests.console_app import Console, Http, RunnerClient
from tests.database_clock import let_lease_run_out, let_time_pass_since_claim
from tests.people import Tenant, fresh

ROOT = Path(__file__).parents[3]


class Refusal(SlipwayError):
    """The hook refuses this ending."""

    code, status = "refused_by_hook", 409


@dataclass
class Scene:
    """One job, with everybody who can end it."""

    console: Console
    ours: Tenant
    job: Job
    operator: Http
    runner: RunnerClient

    def in_status(self, status: JobStatus) -> Claim | None:
        if status == JobStatus.QUEUED:
            return None
        return self.runner.take() if status == JobStatus.CLAIMED else self.runner.take_and_start()


Trigger = Callable[[Scene, Claim], Any]


def report(status: str, **fields: Any) -> Trigger:
    return lambda scene, claim: scene.runner.report(claim, status, **fields)


def cancel_through_the_api(scene: Scene, claim: Claim, *, force: bool = False) -> Any:
    return scene.operator.post(f"/api/jobs/{scene.job.pk}/cancel", json={"force": force})


def cancel_by_force(scene: Scene, claim: Claim) -> Any:
    return cancel_through_the_api(scene, claim, force=True)


def stop_after_a_cancel(scene: Scene, claim: Claim) -> Any:
    cancel_through_the_api(scene, claim)
    return scene.runner.report(claim, "CANCELLED")


def fail_after_a_cancel(scene: Scene, claim: Claim) -> Any:
    cancel_through_the_api(scene, claim)
    return scene.runner.fail(claim)


def lose_the_runner(scene: Scene, claim: Claim) -> Any:
    let_lease_run_out(scene.job)
    return take_back_lost_jobs()


def lose_the_runner_after_a_cancel(scene: Scene, claim: Claim) -> Any:
    cancel_through_the_api(scene, claim)
    return lose_the_runner(scene, claim)


def time_out(scene: Scene, claim: Claim) -> Any:
    let_time_pass_since_claim(scene.job, timedelta(seconds=scene.job.timeout_seconds + 1))
    request_timeouts()
    overdue = Now() - timedelta(seconds=TIMEOUT_GRACE_SECONDS + 1)
    Job.objects.filter(pk=scene.job.pk).update(cancel_requested_at=overdue)
    return end_timed_out_jobs()


def refuse_at_the_claim(scene: Scene, claim: Claim) -> Any:
    """The job is QUEUED here: the claim itself moves it on, and its answer refuses it."""

    def refuse(job: Job, claim_id: object) -> dict[str, Any]:
        raise Refusal("This job may not run.")

    hooks.claim_fields.append(refuse)
    try:
        return scene.runner.post("/api/jobs/claim", json=scene.runner.claim_request())
    finally:
        hooks.claim_fields.remove(refuse)


QUEUED, CLAIMED, PROCESSING = JobStatus.QUEUED, JobStatus.CLAIMED, JobStatus.PROCESSING

#: Each way to end a job: the move, its source status, and the job's status before.
TRIGGERS: dict[str, tuple[str, JobStatus, JobStatus, Trigger]] = {
    "reports success": ("succeed", PROCESSING, PROCESSING, report("SUCCESS")),
    "reports failure before the start": ("fail", CLAIMED, CLAIMED, report("FAILED", fatal=True)),
    "reports failure": ("fail", PROCESSING, PROCESSING, report("FAILED", fatal=True)),
    "is refused at the claim": ("fail", CLAIMED, QUEUED, refuse_at_the_claim),
    "is lost": ("fail", PROCESSING, PROCESSING, lose_the_runner),
    "is cancelled while queued": ("cancel", QUEUED, QUEUED, cancel_through_the_api),
    "stops before the start": ("cancel", CLAIMED, CLAIMED, stop_after_a_cancel),
    "stops": ("cancel", PROCESSING, PROCESSING, stop_after_a_cancel),
    "stops without being asked": ("cancel", PROCESSING, PROCESSING, report("CANCELLED")),
    "fails after a cancel": ("cancel", PROCESSING, PROCESSING, fail_after_a_cancel),
    "is cancelled by force before the start": ("cancel", CLAIMED, CLAIMED, cancel_by_force),
    "is cancelled by force": ("cancel", PROCESSING, PROCESSING, cancel_by_force),
    "is lost after a cancel": ("cancel", PROCESSING, PROCESSING, lose_the_runner_after_a_cancel),
    "is lost after a cancel, before the start": ("cancel", CLAIMED, CLAIMED, lose_the_runner_after_a_cancel),
    "times out before the start": ("cancel", CLAIMED, CLAIMED, time_out),
    "times out": ("cancel", PROCESSING, PROCESSING, time_out),
}  # fmt: skip

every_trigger = pytest.mark.parametrize("trigger", TRIGGERS)


@pytest.fixture
def scene(console: Console, ours: Tenant) -> Scene:
    # Only a job that changes infrastructure fails at its first loss.
    job = ours.request(JobType.DESTROY)
    return Scene(console, ours, job, console.person(ours, "operator"), console.new_runner(ours))


@pytest.fixture
def ends() -> Iterator[list[hooks.JobEnd]]:
    """A webhook's whole registration: each end of each job, however it comes."""
    ends: list[hooks.JobEnd] = []
    registered = hooks.on_end(ends.append)
    yield ends
    hooks.end_hooks.remove(registered)


@pytest.fixture
def refusing_hook() -> Iterator[None]:
    def refuse(end: hooks.JobEnd) -> None:
        raise Refusal

    registered = hooks.on_end(refuse)
    yield
    hooks.end_hooks.remove(registered)


def end_by(trigger: str, scene: Scene) -> Any:
    _, _, before, act = TRIGGERS[trigger]
    claim = scene.in_status(before)
    assert fresh(scene.job).status == before
    return act(scene, claim)  # type: ignore[arg-type]


def test_the_triggers_are_all_moves_to_a_final_status_from_all_their_sources() -> None:
    pairs = {
        (move, source) for move, moves in MOVES.items() for source, end in moves.items() if is_final(end)
    }
    assert {(move, source) for move, source, _, _ in TRIGGERS.values()} == pairs


@every_trigger
def test_a_hook_hears_of_every_ending_once(scene: Scene, ends: list[hooks.JobEnd], trigger: str) -> None:
    move, source, _, _ = TRIGGERS[trigger]
    end_by(trigger, scene)
    job = fresh(scene.job)
    assert job.status == MOVES[move][source]
    (end,) = ends
    assert (end.job.pk, end.job.status, end.job.finished_at) == (job.pk, job.status, job.finished_at)
    assert (end.job.error_code, end.job.error_message) == (job.error_code, job.error_message)


@every_trigger
@pytest.mark.usefixtures("refusing_hook")
def test_a_hook_that_raises_leaves_the_job_as_it_was(scene: Scene, trigger: str) -> None:
    end_by(trigger, scene)
    job = fresh(scene.job)
    _, source, _, _ = TRIGGERS[trigger]
    assert (job.status, job.finished_at, job.error_code) == (source, None, "")
    assert JobClaim.objects.filter(job=job).exists() == (source != QUEUED)
    assert not Attempt.objects.filter(job=job, ended_at__isnull=False).exists()
    ended = ("job.succeed", "job.fail", "job.cancel", "job.cancelled")
    assert not AuditEvent.objects.filter(target_id=job.pk, action__in=ended).exists()


@every_trigger
def test_without_a_hook_each_trigger_still_ends_the_job(scene: Scene, trigger: str) -> None:
    move, source, _, _ = TRIGGERS[trigger]
    end_by(trigger, scene)
    assert fresh(scene.job).status == MOVES[move][source]


@pytest.mark.parametrize("type", [type for type, kind in KINDS.items() if not kind.changes_infrastructure])
def test_what_is_queued_again_has_not_ended(
    console: Console, ours: Tenant, ends: list[hooks.JobEnd], type: JobType
) -> None:
    job, runner = ours.request(type), console.new_runner(ours)
    runner.fail(runner.take_and_start())
    assert (fresh(job).status, ends) == ("QUEUED", [])
    Job.objects.filter(pk=job.pk).update(run_after=Now())
    runner.take_and_start()
    let_lease_run_out(job)
    take_back_lost_jobs()
    assert (fresh(job).status, ends) == ("QUEUED", [])


def test_the_janitor_goes_on_with_other_jobs_when_a_hook_refuses_one(scene: Scene) -> None:
    def refuse(end: hooks.JobEnd) -> None:
        if end.job.pk == scene.job.pk:
            raise Refusal

    scene.runner.take_and_start()
    other = scene.ours.request(JobType.DESTROY, spec=scene.ours.new_spec("other"))
    scene.console.new_runner(scene.ours, "second").take_and_start()
    let_lease_run_out(scene.job)
    let_lease_run_out(other)
    registered = hooks.on_end(refuse)
    try:
        assert take_back_lost_jobs() == 1
    finally:
        hooks.end_hooks.remove(registered)
    assert (fresh(scene.job).status, fresh(other).status) == ("PROCESSING", "FAILED")
    assert take_back_lost_jobs() == 1, "the next look tries again"


def test_a_hook_can_say_which_endings_it_needs(console: Console, ours: Tenant) -> None:
    ends: list[hooks.JobEnd] = []
    registered = hooks.on_end(
        ends.append, types=[JobType.PLAN], statuses=[JobStatus.SUCCESS], needs=lambda result: "a" in result
    )
    runner = console.new_runner(ours)
    try:
        for result in ({"a": 1}, {"b": 1}, None):
            ours.request(JobType.PLAN)
            runner.succeed(runner.take_and_start(), result=result)
        ours.request(JobType.PLAN)
        runner.fail(runner.take_and_start(), fatal=True, result={"a": 1})
    finally:
        hooks.end_hooks.remove(registered)
    assert [end.result for end in ends] == [{"a": 1}]


def test_two_packages_cannot_give_the_same_field() -> None:
    assert hooks.add_fields({"plan": 1}, {"state": 2}) == {"plan": 1, "state": 2}
    with pytest.raises(hooks.DuplicateField, match="the same field: plan"):
        hooks.add_fields({"plan": 1}, {"plan": 2})


def test_a_claim_to_which_two_packages_give_the_same_field_fails_its_job(
    console: Console, ours: Tenant
) -> None:
    def second_state(job: Job, claim_id: object) -> dict[str, Any]:
        return {"state": None}

    job, runner = ours.request(), console.new_runner(ours)
    hooks.claim_fields.append(second_state)
    try:
        assert runner.claim() is None
    finally:
        hooks.claim_fields.remove(second_state)
    assert (fresh(job).status, fresh(job).error_code) == ("FAILED", "snapshot_unreadable")


# ── the only place ───────────────────────────────────────────────────────────────────────────────

ENDINGS = {"end_attempt", "cancel_queued"}
FINAL_WORDS = {"SUCCESS", "FAILED", "CANCELLED"}


def sources() -> Iterator[tuple[str, ast.AST]]:
    for package in ("console", "specs"):
        for path in (ROOT / package).rglob("*.py"):
            if "migrations" not in path.parts:
                yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def ends_through_the_queue(node: ast.AST) -> bool:
    """Find `queue.end_attempt`, `queue.cancel_queued`, and an import of either."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id == "queue" and node.attr in ENDINGS
    if isinstance(node, ast.ImportFrom) and node.module == "console.jobs.queue":
        return any(alias.name in ENDINGS for alias in node.names)
    return False


def writes_a_final_status(node: ast.AST) -> bool:
    """Find `….update(status=FAILED)`, `job.status = FAILED` and SQL that updates jobs."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        values = [keyword.value for keyword in node.keywords if keyword.arg == "status"]
        return node.func.attr in ("update", "create") and any(map(names_a_final_status, values))
    if isinstance(node, ast.Assign):
        targets = [target for target in node.targets if isinstance(target, ast.Attribute)]
        return any(target.attr == "status" for target in targets) and names_a_final_status(node.value)
    return isinstance(node, ast.Constant) and "UPDATE jobs_job\n" in str(node.value)


def names_a_final_status(value: ast.AST) -> bool:
    words = {
        getattr(part, name)
        for part in ast.walk(value)
        for name in ("id", "attr", "value")
        if isinstance(getattr(part, name, None), str)
    }
    return bool(words & FINAL_WORDS)


def test_only_one_module_ends_jobs() -> None:
    callers = {path for path, tree in sources() if any(map(ends_through_the_queue, ast.walk(tree)))}
    assert callers == {"console/jobs/ending.py"}


def test_only_the_queue_writes_a_final_status() -> None:
    writers = {path for path, tree in sources() if any(map(writes_a_final_status, ast.walk(tree)))}
    assert writers == {"console/jobs/queue.py"}


@pytest.mark.parametrize(
    "source",
    [
        "Job.objects.filter(pk=1).update(status=JobStatus.FAILED)",
        "jobs.update(status='CANCELLED', finished_at=Now())",
        "job.status = SUCCESS",
        "SQL = '''\nUPDATE jobs_job\nSET status = %(status)s'''",
    ],
)
def test_a_second_writer_would_be_found(source: str) -> None:
    assert any(map(writes_a_final_status, ast.walk(ast.parse(source))))


def compares_with_a_type(node: ast.AST) -> bool:
    """Find `job.type != "PLAN"`, which asks for what `job.kind` says by name."""
    if not isinstance(node, ast.Compare):
        return False
    texts = [part.value for part in (node.left, *node.comparators) if isinstance(part, ast.Constant)]
    return any(text in set(JobType) for text in texts if isinstance(text, str))


def test_no_module_asks_for_a_type_by_its_text() -> None:
    assert [path for path, tree in sources() if any(map(compares_with_a_type, ast.walk(tree)))] == []


# ── an identity hears of its tests ───────────────────────────────────────────────────────────────


def run_to_its_last_try(console: Console, ours: Tenant) -> tuple[Job, RunnerClient, Claim]:
    """A test of an identity that has passed before, under way, with no retries left."""
    identity = new_identity(ours)
    type(identity).objects.filter(pk=identity.pk).update(test_passed=True, tested_at=Now())
    job = request_connection_test(identity=identity, requested_by=ours.operator)
    Job.objects.filter(pk=job.pk).update(retry_count=job.max_retries)
    runner = console.new_runner(ours)
    return job, runner, runner.take_and_start()


def last_test_of(job: Job) -> tuple[bool | None, str]:
    identity = fresh(job).identity
    assert identity is not None
    return identity.test_passed, str(identity.last_test.get("error", ""))


def test_an_identity_hears_of_a_test_whose_runner_was_lost(console: Console, ours: Tenant) -> None:
    job, _, _ = run_to_its_last_try(console, ours)
    let_lease_run_out(job)
    assert take_back_lost_jobs() == 1
    assert fresh(job).error_code == "runner_lost"
    passed, error = last_test_of(job)
    assert not passed
    assert "was lost" in error


def test_an_identity_hears_of_a_test_that_timed_out(console: Console, ours: Tenant) -> None:
    job, runner, claim = run_to_its_last_try(console, ours)
    time_out(Scene(console, ours, job, console.person(ours, "operator"), runner), claim)
    assert fresh(job).error_code == "timeout_exceeded"
    assert last_test_of(job) == (False, "Timeout exceeded.")


@pytest.mark.parametrize("force", [False, True])
def test_an_identity_hears_of_a_test_that_was_cancelled(console: Console, ours: Tenant, force: bool) -> None:
    job, runner, claim = run_to_its_last_try(console, ours)
    cancel_job(job=job, requested_by=ours.operator, force=force)
    if not force:
        runner.report(claim, "CANCELLED")
    passed, error = last_test_of(job)
    assert not passed
    assert error == fresh(job).error_message


def test_an_identity_hears_of_a_test_that_was_refused_at_the_claim(console: Console, ours: Tenant) -> None:
    identity = new_identity(ours)
    job = request_connection_test(identity=identity, requested_by=ours.operator)
    ours.new_pool("elsewhere")
    change_identity(identity=identity, changed_by=ours.admin, allowed=Allowed(pools=["elsewhere"]))
    assert console.new_runner(ours).claim() is None
    assert fresh(job).status == "FAILED"
    assert last_test_of(job) == (False, fresh(job).error_message)


def test_a_test_that_was_cancelled_before_it_started_leaves_the_last_result(
    console: Console, ours: Tenant
) -> None:
    identity = new_identity(ours)
    type(identity).objects.filter(pk=identity.pk).update(test_passed=True, tested_at=Now())
    job = request_connection_test(identity=identity, requested_by=ours.operator)
    console.person(ours, "operator").post(f"/api/jobs/{job.pk}/cancel")
    assert fresh(job).status == "CANCELLED"
    assert last_test_of(job) == (True, "")


def test_an_identity_hears_of_a_scan_whose_runner_was_lost(console: Console, ours: Tenant) -> None:
    identity = new_identity(ours)
    answer = console.person(ours, "operator").post(f"/api/identities/{identity.pk}/refresh")
    job = Job.objects.get(pk=answer.json()["id"])
    Job.objects.filter(pk=job.pk).update(retry_count=job.max_retries)
    console.new_runner(ours).take_and_start()
    let_lease_run_out(job)
    assert take_back_lost_jobs() == 1
    identity.refresh_from_db()
    assert identity.last_fetch["complete"] is False
    assert "was lost" in identity.last_fetch["error"]
