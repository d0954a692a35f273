"""The organization that is measured: a person, a pool, runners with credentials, and rows of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.db import connection

from console.accounts.models import Installation, Organization, User
from console.accounts.services import create_organization
from console.jobs.models import Job
from console.jobs.services import request_plan
from console.runners.models import Pool
from console.runners.services import (
    KnownRunner,
    create_registration_token,
    default_pool,
    recognize,
    register_runner,
)
from runner.protocol import RunnerFacts
from specs.models import Spec
from specs.services import create_spec_from_blueprint

#: What a runner of ours can do; the jobs that are measured are PLANs.
TYPES = ["PLAN", "DEPLOY", "DESTROY"]
FACTS = RunnerFacts(version="bench", terraform_version="none", platform="bench", slots=1, types=TYPES)

#: Specs like a first one. Rows are copied whole, so that a new column needs no change here.
COPY_SPECS = """
INSERT INTO specs_spec
SELECT made.* FROM specs_spec AS model, generate_series(1, %(count)s) AS n,
     LATERAL jsonb_populate_record(model, jsonb_build_object(
         'id', uuidv7(), 'slug', model.slug || '-' || n, 'name', model.name || ' ' || n)) AS made
WHERE model.id = %(model)s
RETURNING id
"""

#: A job like a first one for each of these specs, since a spec has one active job.
COPY_JOBS = """
INSERT INTO jobs_job
SELECT made.* FROM jobs_job AS model, unnest(%(specs)s::uuid[]) WITH ORDINALITY AS spec(id, n),
     LATERAL jsonb_populate_record(model, jsonb_build_object(
         'id', uuidv7(), 'number', model.number + n, 'spec_id', spec.id)) AS made
WHERE model.id = %(model)s
"""


@dataclass(frozen=True)
class Tenant:
    """One organization with its own pool, so that benchmarks do not meet each other's jobs."""

    organization: Organization
    pool: Pool
    person: User

    def new_runner(self) -> tuple[KnownRunner, str]:
        """A runner of the pool, and its credential."""
        token = create_registration_token(
            organization=self.organization, pool=self.pool, created_by=self.person
        )
        _, credential = register_runner(token=token, name=f"runner-{uuid4().hex}", facts=FACTS)
        return recognize(credential), credential

    def new_spec(self) -> Spec:
        return create_spec_from_blueprint(
            organization=self.organization,
            name=f"Spec {uuid4().hex}",
            slug=f"spec-{uuid4().hex}",
            blueprint="demo",
            pool_id=self.pool.pk,
            author=self.person,
        )

    def queue_job(self, spec: Spec) -> Job:
        return request_plan(spec=spec, requested_by=self.person)

    def queue_jobs(self, count: int) -> None:
        """Queue the PLAN of `count` demo specs. Called once: the numbers follow those of the first job."""
        model = self.queue_job(self.new_spec())
        specs = _fetch(COPY_SPECS, {"model": model.spec_id, "count": count - 1})
        with connection.cursor() as cursor:
            cursor.execute(COPY_JOBS, {"model": model.pk, "specs": specs})


def _fetch(statement: str, values: dict[str, Any]) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [row[0] for row in cursor.fetchall()]


def new_tenant(slug: str) -> Tenant:
    Installation.objects.get_or_create(pk=1)
    person = User.objects.create(username=f"{slug}-admin")
    organization = create_organization(name=slug, slug=slug, admin=person)
    return Tenant(organization, default_pool(organization), person)
