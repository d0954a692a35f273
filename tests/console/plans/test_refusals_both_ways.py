"""What is refused about plans, destroys and retries is refused by API and beside the button alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from console.jobs.models import Job
from console.jobs.services import cancel_job, request_destroy
from console.plans.models import Plan
from console.plans.services import request_deploy
from tests.console.plans.review import Answer, Person, fresh_plan, protect, refusal_in, revise, write_state
from tests.console_app import Console
from tests.people import Tenant, fresh
from tests.plans_made import a_plan

#: Both ways of asking for one thing: by API, by page; and what both must answer.
BothWays = tuple[Any, Answer, int, str, str]


def applying(console: Console, ours: Tenant, plan: Plan, who: str = "operator") -> tuple[Any, Answer]:
    person = Person(getattr(ours, who))
    return console.person(ours, who).post(f"/api/plans/{plan.pk}/deploy"), person.applies(fresh_plan(plan))


def approving(console: Console, ours: Tenant, plan: Plan, who: str) -> tuple[Any, Answer]:
    person = Person(getattr(ours, who))
    return console.person(ours, who).post(f"/api/plans/{plan.pk}/approvals"), person.approves(plan)


def retrying(console: Console, ours: Tenant, job: Job) -> tuple[Any, Answer]:
    api = console.person(ours, "operator").post(f"/api/jobs/{job.pk}/retry")
    return api, Person(ours.operator).presses_job("job-retry", fresh(job))


def destroying(console: Console, ours: Tenant, name: str, who: str = "operator") -> tuple[Any, Answer]:
    body = {"spec": str(ours.spec.pk), "type": "DESTROY", "confirmation": name}
    page = Person(getattr(ours, who)).presses("spec-destroy", ours.spec, confirmation=name)
    return console.person(ours, who).post("/api/jobs", json=body), page


def another_lineage(console: Console, ours: Tenant) -> BothWays:
    write_state(ours, ours.spec, "one", lineage="first", serial=3)
    plan = a_plan(console, ours, lineage="second", serial=3)
    return *applying(console, ours, plan), 409, "plan_stale", "replaced by another one"


def not_ended(console: Console, ours: Tenant) -> BothWays:
    ours.request()
    runner = console.new_runner(ours)
    plan = Plan.objects.get(pk=runner.upload_plan(runner.take_and_start()).json()["plan_id"])
    return *applying(console, ours, plan), 409, "gate_closed", "which is PROCESSING"


def another_job(console: Console, ours: Tenant) -> BothWays:
    plan = a_plan(console, ours)
    ours.request()
    return *applying(console, ours, plan), 409, "job_active", "is in use by PLAN"


def no_role(console: Console, ours: Tenant) -> BothWays:
    return *applying(console, ours, a_plan(console, ours), "viewer"), 403, "forbidden", "role"


def ones_own(console: Console, ours: Tenant) -> BothWays:
    plan = a_plan(console, ours, spec=protect(ours.spec))
    return *approving(console, ours, plan, "operator"), 403, "forbidden", "cannot approve it"


def approving_what_is_stale(console: Console, ours: Tenant) -> BothWays:
    plan = a_plan(console, ours, spec=protect(ours.spec))
    revise(ours.spec, files={"main.tf": "# other"})
    return *approving(console, ours, plan, "admin"), 409, "plan_stale", "is stale"


def approving_what_is_spent(console: Console, ours: Tenant) -> BothWays:
    plan = a_plan(console, ours)
    request_deploy(plan=plan, requested_by=ours.operator)
    console.new_runner(ours, "deployer").take_and_start()
    return *approving(console, ours, plan, "admin"), 409, "plan_spent", "applied once"


def wrong_name(console: Console, ours: Tenant) -> BothWays:
    return *destroying(console, ours, "Network"), 400, "confirmation_mismatch", "does not match"


def destroying_without_the_role(console: Console, ours: Tenant) -> BothWays:
    return *destroying(console, ours, ours.spec.name, "viewer"), 403, "forbidden", "role"


def retrying_what_never_began(console: Console, ours: Tenant) -> BothWays:
    job = request_deploy(plan=a_plan(console, ours), requested_by=ours.operator)
    cancel_job(job=job, requested_by=ours.operator)
    return *retrying(console, ours, job), 409, "conflict", "Plan 1 is unspent: apply it again"


def retrying_what_succeeded(console: Console, ours: Tenant) -> BothWays:
    job = request_deploy(plan=a_plan(console, ours), requested_by=ours.operator)
    runner = console.new_runner(ours)
    runner.succeed(runner.take_and_start(), result={"outputs": {}})
    return *retrying(console, ours, job), 409, "conflict", "so there is nothing to retry"


def retrying_what_runs(console: Console, ours: Tenant) -> BothWays:
    return *retrying(console, ours, ours.request()), 409, "conflict", "has not ended yet"


def retrying_what_was_overtaken(console: Console, ours: Tenant) -> BothWays:
    job = request_deploy(plan=a_plan(console, ours), requested_by=ours.operator)
    runner = console.new_runner(ours)
    runner.fail(runner.take_and_start())
    request_deploy(plan=a_plan(console, ours, plan=b"another"), requested_by=ours.operator)
    runner.succeed(runner.take_and_start(), result={"outputs": {}})
    return *retrying(console, ours, job), 409, "plan_stale", "ran since"


def retrying_the_destroy_of_what_is_protected(console: Console, ours: Tenant) -> BothWays:
    job = request_destroy(spec=ours.spec, confirmation=ours.spec.name, requested_by=ours.operator)
    runner = console.new_runner(ours)
    runner.fail(runner.take_and_start())
    protect(ours.spec)
    return *retrying(console, ours, job), 409, "gate_closed", "is protected"


REFUSALS: list[Callable[[Console, Tenant], BothWays]] = [
    another_lineage, not_ended, another_job, no_role, ones_own, approving_what_is_stale,
    approving_what_is_spent, wrong_name, destroying_without_the_role, retrying_what_never_began,
    retrying_what_succeeded, retrying_what_runs, retrying_what_was_overtaken,
    retrying_the_destroy_of_what_is_protected,
]  # fmt: skip


@pytest.mark.parametrize("refused", REFUSALS, ids=lambda one: one.__name__)
def test_both_ways_are_refused_alike_and_nothing_happens(
    console: Console, ours: Tenant, refused: Callable[[Console, Tenant], BothWays]
) -> None:
    by_api, by_page, status, code, words = refused(console, ours)
    assert (by_api.status_code, by_api.json()["code"]) == (status, code), by_api.text
    assert words in by_api.json()["detail"]
    assert by_page.status_code == status
    assert by_api.json()["detail"] in refusal_in(by_page)
    waiting = Job.objects.filter(spec=ours.spec, status="QUEUED", type__in=("DEPLOY", "DESTROY"))
    assert not waiting.exists()
