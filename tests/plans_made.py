"""Plans as tests need them: made by a PLAN job that went through the wire."""

from __future__ import annotations

from typing import Any

from console.jobs.models import Job
from console.plans.models import Plan
from specs.models import Spec
from tests.console_app import Console
from tests.people import Tenant


def a_plan(console: Console, tenant: Tenant, *, spec: Spec | None = None, **upload: Any) -> Plan:
    """A plan of the Spec as it is now, whose job has succeeded."""
    job = tenant.request(spec=spec)
    runner = console.new_runner(tenant, f"planner-{job.number}")
    claim = runner.take_and_start()
    assert claim.job_id == str(job.pk), "another job was queued before the plan's"
    answer = runner.upload_plan(claim, **upload)
    assert answer.status_code == 201, answer.text
    assert runner.succeed(claim, result={"plan_id": answer.json()["plan_id"]}).status_code == 200
    return Plan.objects.select_related("spec__organization", "job").get(job=Job.objects.get(pk=job.pk))
