"""Two applies of one plan at the same moment, with real commits: exactly one starts."""

from __future__ import annotations

from functools import partial
from uuid import UUID

import pytest

from console.errors import JobActive, PlanSpent
from console.jobs.attempts import start_attempt
from console.jobs.models import Job
from console.jobs.queue import Held
from console.plans.models import Plan
from console.plans.services import request_deploy, spend
from runner.protocol import JobType
from tests.concurrency.threads import outcomes
from tests.console.plans.review import fresh_plan
from tests.console_app import Console
from tests.people import Tenant
from tests.plans_made import a_plan

ROUNDS = 4


@pytest.mark.parametrize("round", range(ROUNDS))
def test_of_two_clicks_on_one_plan_one_is_queued(console: Console, ours: Tenant, round: int) -> None:
    plan = a_plan(console, ours)
    clicks = [
        lambda: request_deploy(plan=fresh_plan(plan), requested_by=ours.operator),
        lambda: request_deploy(plan=fresh_plan(plan), requested_by=ours.second_operator),
    ]
    assert sorted(outcomes(clicks, JobActive)) == [False, True]
    assert Job.objects.filter(plan=plan).count() == 1


@pytest.mark.parametrize("round", range(ROUNDS))
def test_of_two_deploys_of_one_plan_one_starts(console: Console, ours: Tenant, round: int) -> None:
    """The index lets a Spec have one active job; should it ever fail to, the plan itself decides."""
    plan = a_plan(console, ours)
    first = request_deploy(plan=plan, requested_by=ours.operator)
    second = _another_deploy(plan, ours)
    claims = [_claimed(console, ours, name) for name in ("one", "two")]
    assert {claim.job_id for claim in claims} == {first.pk, second.pk}
    assert sorted(outcomes([partial(start_attempt, held=claim) for claim in claims], PlanSpent)) == [
        False,
        True,
    ]
    statuses = sorted(Job.objects.filter(plan=plan).values_list("status", flat=True))
    assert statuses == ["CLAIMED", "PROCESSING"]
    assert fresh_plan(plan).spent_by.status == "PROCESSING"  # type: ignore[union-attr]


def test_a_plan_spent_by_one_job_is_refused_to_another_forever(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours)
    job = request_deploy(plan=plan, requested_by=ours.operator)
    spend(Job.objects.select_related("plan").get(pk=job.pk))
    with pytest.raises(PlanSpent, match="a plan is applied once"):
        spend(Job.objects.select_related("plan").get(pk=_another_deploy(plan, ours).pk))


def _another_deploy(plan: Plan, ours: Tenant) -> Job:
    """A second DEPLOY of the plan, on a Spec of its own, since the index would refuse it on the plan's."""
    job = ours.request(JobType.DEPLOY, spec=ours.new_spec("beside"))
    Job.objects.filter(pk=job.pk).update(plan=plan)
    return Job.objects.get(pk=job.pk)


def _claimed(console: Console, ours: Tenant, name: str) -> Held:
    runner, credential = ours.new_runner(name)
    claim = console.runner(credential).take()
    return Held(UUID(claim.job_id), UUID(claim.claim_id), runner.pk)
