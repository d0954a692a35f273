"""An installation as it is after years: 10,000 Specs, 1,000,000 jobs, a long log and a large plan."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import connection
from django.utils import timezone

from bench.tenant import COPY_SPECS, Tenant, new_tenant
from console.jobs.models import Job, LogChunk
from console.plans.models import Plan, PlanChange
from specs.models import Spec

#: Finished jobs like a first one, spread over these specs. Rows are copied whole, as in `tenant`.
FINISHED_JOBS = """
INSERT INTO jobs_job
SELECT made.* FROM jobs_job AS model, generate_series(1, %(count)s) AS n,
     LATERAL jsonb_populate_record(model, jsonb_build_object(
         'id', uuidv7(), 'number', model.number + n, 'spec_id', (%(specs)s::uuid[])[1 + n %% %(spec_count)s],
         'config_snapshot', '{}'::jsonb, 'status', 'SUCCESS', 'attempt_count', 1,
         'claimed_at', now(), 'started_at', now(), 'finished_at', now())) AS made
WHERE model.id = %(model)s
"""

LINES_TO_A_CHUNK = 500


@dataclass(frozen=True)
class OldTenant:
    """The organization, and the addresses of its pages that are measured."""

    tenant: Tenant
    pages: dict[str, str]
    long_log: Job


def old_tenant(slug: str, *, specs: int, jobs: int, lines: int, changes: int) -> OldTenant:
    tenant = new_tenant(slug)
    spec = tenant.new_spec()
    model = tenant.queue_job(spec)
    with connection.cursor() as cursor:
        cursor.execute(COPY_SPECS, {"model": spec.pk, "count": specs - 1})
        ids = [row[0] for row in cursor.fetchall()]
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(
            FINISHED_JOBS, {"model": model.pk, "count": jobs, "specs": ids, "spec_count": len(ids)}
        )
        cursor.execute("SET session_replication_role = origin")
        cursor.execute("VACUUM ANALYZE jobs_job, specs_spec")
    job = create_finished_job(model, lines=lines)
    plan = a_plan(job, spec, changes=changes)
    organization = tenant.organization.slug
    pages = {
        "Specs": f"/{organization}/specs/",
        "jobs": f"/{organization}/jobs/",
        "job": f"/{organization}/jobs/{job.number}/",
        "plan": f"/{organization}/specs/{spec.slug}/plans/{plan.number}/",
    }
    return OldTenant(tenant, pages, job)


def create_finished_job(job: Job, *, lines: int) -> Job:
    """The job with a log of that many lines, at its end."""
    now = timezone.now()
    Job.objects.filter(pk=job.pk).update(
        status="SUCCESS",
        claimed_at=now,
        started_at=now,
        finished_at=now,
        log_next_seq=lines + 1,
        result={"summary": {"add": 1}},
    )
    write_log(job, lines)
    job.refresh_from_db()
    return job


def write_log(job: Job, lines: int) -> None:
    LogChunk.objects.bulk_create(
        LogChunk(
            job_id=job.pk,
            first_seq=first,
            line_count=LINES_TO_A_CHUNK,
            level_mask=2,
            lines="\n".join(_line(seq) for seq in range(first, first + LINES_TO_A_CHUNK)),
        )
        for first in range(1, lines, LINES_TO_A_CHUNK)
    )


def _line(seq: int) -> str:
    data: dict[str, Any] | None = None
    if seq in (1, 100):
        data = {"kind": "phase", "phase": "init" if seq == 1 else "apply", "event": "start"}
    colour = "\x1b[32m" if seq % 10 == 0 else ""
    message = (
        f"{colour}module.network[{seq}].aws_subnet.private: Still creating... [{seq * 2_654_435_761:032x}]"
    )
    line = {"at": "2026-11-01T12:00:00.000000Z", "level": "info", "message": message, "data": data}
    return orjson.dumps(line).decode()


def a_plan(job: Job, spec: Spec, *, changes: int) -> Plan:
    """A plan with that many resources: some destroyed, some replaced, most of them new."""
    plan = Plan.objects.create(
        organization_id=spec.organization_id,
        spec=spec,
        job=job,
        number=1,
        snapshot_hash=job.snapshot_hash,
        state_lineage="",
        state_serial=0,
        terraform_version="1.11.4",
        provider_lock_sha256="",
        file_sha256="0" * 64,
        resource_count=changes,
        summary={"add": changes - 40, "change": 20, "replace": 10, "destroy": 10},
        change_count=changes,
    )
    PlanChange.objects.bulk_create(_change(plan, position, changes) for position in range(1, changes + 1))
    return plan


def _change(plan: Plan, position: int, changes: int) -> PlanChange:
    action = next((name for end, name in ACTIONS if position <= end), "create")
    module = f"module.zone_{position % 20}"
    address = f"{module}.aws_instance.server[{position}]"
    body = {
        "address": address,
        "module": module,
        "type": "aws_instance",
        "name": "server",
        "action": action,
        "deposed": "",
        "previous_address": "",
        "import_id": "",
        "order": "",
        "reason": "",
        "replace_paths": [],
        "attributes": [_attribute(name, position) for name in ATTRIBUTES],
    }
    return PlanChange(
        plan=plan,
        position=position,
        action=action,
        module=module,
        address=address,
        type="aws_instance",
        body=body,
    )


ACTIONS = ((10, "delete"), (20, "replace"), (40, "update"))
ATTRIBUTES = ("ami", "arn", "id", "instance_type", "private_ip", "subnet_id", "tags", "user_data")


def _attribute(name: str, position: int) -> dict[str, Any]:
    value: Any = f"{name}-{position}" if name != "tags" else {"Name": f"server-{position}", "team": "shop"}
    unknown = name in ("arn", "id")
    return {
        "name": name,
        "before": json.dumps(value)[::-1],
        "after": "(known after apply)" if unknown else value,
        "before_sensitive": False,
        "after_sensitive": False,
        "after_unknown": unknown,
        "forces_replacement": False,
    }
