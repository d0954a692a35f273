"""The list of Specs: each with its last plan, deploy and drift, its components, its lock and its end.

A page of thirty by name costs seven statements along indexes, with ten Specs or a hundred thousand.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Q

from console.accounts.models import Organization
from console.jobs.models import Job
from console.plans.models import Plan
from console.state.models import StateLock
from specs.models import Spec

PAGE_SIZE = 30

#: What the list can be sorted by: the columns of the key, and whether it goes down.
SORTS = {"name": ("name", False), "newest": ("id", True), "deployed": ("deployed_at", True)}

#: Deployed, and not destroyed since.
STANDS = Q(deployed_at__isnull=False) & (Q(destroyed_at=None) | Q(destroyed_at__lt=F("deployed_at")))

#: For each Spec its newest job of all, its newest PLAN, and the newest that changed infrastructure: three
#: steps down the index `job_newest_of_spec` each.
NEWEST_JOBS = """
SELECT spec.id, newest.id, planned.id, changed.id
FROM unnest(%(specs)s::uuid[]) AS spec (id)
LEFT JOIN LATERAL (SELECT id FROM jobs_job WHERE spec_id = spec.id ORDER BY id DESC LIMIT 1) newest ON true
LEFT JOIN LATERAL (SELECT id FROM jobs_job WHERE spec_id = spec.id AND type = 'PLAN'
                   ORDER BY id DESC LIMIT 1) planned ON true
LEFT JOIN LATERAL (SELECT id FROM jobs_job WHERE spec_id = spec.id AND type IN ('DEPLOY', 'DESTROY')
                   ORDER BY id DESC LIMIT 1) changed ON true
"""
NEWEST_PLANS = """
SELECT plan.id FROM unnest(%(specs)s::uuid[]) AS spec (id)
JOIN LATERAL (SELECT id FROM plans_plan WHERE spec_id = spec.id AND NOT speculative
              ORDER BY id DESC LIMIT 1) plan ON true
"""
#: From one environment to the next along the index `spec_environments`, not past every Spec.
ENVIRONMENTS = """
WITH RECURSIVE found (environment) AS (
    (SELECT environment FROM specs_spec WHERE organization_id = %(organization)s AND archived_at IS NULL
     ORDER BY environment LIMIT 1)
    UNION ALL
    SELECT (SELECT spec.environment FROM specs_spec spec
            WHERE spec.organization_id = %(organization)s AND spec.archived_at IS NULL
              AND spec.environment > found.environment
            ORDER BY spec.environment LIMIT 1)
    FROM found WHERE found.environment IS NOT NULL
)
SELECT environment FROM found WHERE environment IS NOT NULL LIMIT %(most)s
"""
MOST_ENVIRONMENTS = 30


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters and the order of the list."""

    text: str = ""
    environment: str = ""
    standing: str = ""
    archived: bool = False
    sort: str = "name"


@dataclass(frozen=True, slots=True)
class Row:
    spec: Spec
    latest_job: Job | None
    last_plan: Job | None
    last_change: Job | None
    plan: Plan | None
    lock: StateLock | None

    @property
    def components_up(self) -> int:
        return sum(component.gone_at is None for component in self.spec.components.all())

    @property
    def components_down(self) -> int:
        return sum(component.gone_at is not None for component in self.spec.components.all())


@dataclass(frozen=True, slots=True)
class SpecPage:
    rows: list[Row]
    #: The key that the next page begins after; empty at the end.
    next_after: str


def page_of_specs(organization: Organization, filters: Filters, *, after: str = "") -> SpecPage:
    matches = _filtered(organization, filters)
    column, down = SORTS[filters.sort]
    matches = _from(matches, column, down, _spec_of_key(organization, after))
    order = [f"{'-' if down else ''}{column}", f"{'-' if down else ''}pk"]
    specs = list(
        matches.select_related("organization")
        .prefetch_related("components")
        .order_by(*order)[: PAGE_SIZE + 1]
    )
    listed_specs = specs[:PAGE_SIZE]
    return SpecPage(_rows(listed_specs), str(listed_specs[-1].pk) if len(specs) > PAGE_SIZE else "")


def environments_of(organization: Organization) -> list[str]:
    values = {"organization": organization.pk, "most": MOST_ENVIRONMENTS}
    return [name for (name,) in _fetched(ENVIRONMENTS, values)]


def _filtered(organization: Organization, filters: Filters) -> Any:
    specs = Spec.objects.filter(organization=organization, archived_at__isnull=not filters.archived)
    if filters.text:
        specs = specs.filter(
            Q(name__icontains=filters.text) | Q(slug__icontains=filters.text) | Q(blueprint=filters.text)
        )
    if filters.environment:
        specs = specs.filter(environment=filters.environment)
    match filters.standing:
        case "deployed":
            specs = specs.filter(STANDS)
        case "destroyed":
            specs = specs.filter(destroyed_at__isnull=False).exclude(STANDS)
        case "never":
            specs = specs.filter(deployed_at=None, destroyed_at=None)
    return specs.exclude(deployed_at=None) if filters.sort == "deployed" else specs


def _from(specs: Any, column: str, down: bool, last: Spec | None) -> Any:
    """Below the Spec that the last page ended with, if there was one that is listed in this order."""
    value = getattr(last, column, None)
    if last is None or value is None:
        return specs
    sign = "lt" if down else "gt"
    beyond = Q(**{f"{column}__{sign}": value}) | Q(**{column: value, f"pk__{sign}": last.pk})
    # The first condition follows from the second, and tells PostgreSQL where in the index to begin.
    return specs.filter(Q(**{f"{column}__{sign}e": value}) & beyond)


def _spec_of_key(organization: Organization, after: str) -> Spec | None:
    """Return the Spec that a cursor names. An unknown cursor starts the list at the beginning."""
    try:
        return Spec.objects.filter(organization=organization, pk=UUID(after)).first() if after else None
    except ValueError:
        return None


def _rows(specs: list[Spec]) -> list[Row]:
    ids = [spec.pk for spec in specs]
    newest = {row[0]: row[1:] for row in _fetched(NEWEST_JOBS, {"specs": ids})}
    job_ids = {job_id for jobs in newest.values() for job_id in jobs if job_id}
    jobs = Job.objects.defer("config_snapshot", "result").in_bulk(job_ids)
    plan_ids = [row[0] for row in _fetched(NEWEST_PLANS, {"specs": ids})]
    plans = {plan.spec_id: plan for plan in Plan.objects.filter(pk__in=plan_ids)}
    locks = {
        lock.spec_id: lock for lock in StateLock.objects.filter(spec__in=ids).select_related("job", "user")
    }
    return [_row(spec, newest.get(spec.pk, ()), jobs, plans, locks) for spec in specs]


def _row(
    spec: Spec,
    job_ids: tuple[UUID | None, ...],
    jobs: dict[UUID, Job],
    plans: dict[UUID, Plan],
    locks: dict[UUID, StateLock],
) -> Row:
    latest, planned, changed = [jobs.get(job_id) if job_id else None for job_id in job_ids or (None,) * 3]
    return Row(spec, latest, planned, changed, plans.get(spec.pk), locks.get(spec.pk))


def _fetched(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
