"""The content of the dashboard, in a fixed number of statements, however many jobs there are."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    DateTimeField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
)
from django.db.models.fields import DurationField
from django.utils import timezone

from console.accounts.models import Membership, Organization, User
from console.accounts.rights import Right
from console.ids import first_id_at
from console.jobs.lifecycle import FAILED, QUEUED
from console.jobs.models import Job, JobClaim
from console.pages.selectors.charts import Chart, Column, bar_chart
from console.pages.selectors.figures import LOOKED_AT, Ending, HalfHour, figures_of_the_day
from console.pages.selectors.progress import resources_done
from console.plans.approvals import ApprovalStanding, approval_standings
from console.plans.models import Plan
from console.runners.models import Runner
from console.runners.selectors import runners_of
from console.state.models import StateVersion
from specs.models import Revision, Spec

#: How much of each list the dashboard shows; the page behind it shows the rest.
SHOWN = 8
#: How long a plan, a failure or a drift is worth a place here.
LATELY = timedelta(days=7)
SOON = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Running:
    """A job under way, and how far it is; with no total, nobody knows."""

    job: Job
    runner: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ForMe:
    """One thing that waits for this person: what to do, to which Spec, and where."""

    action: str
    words: str
    spec: Spec
    since: datetime
    plan_number: int | None = None


@dataclass(frozen=True, slots=True)
class Dashboard:
    running: list[Running]
    queued: int
    for_me: list[ForMe]
    failed: list[Job]
    drifted: list[Plan]
    runners: list[Runner]
    day: list[HalfHour]
    endings: list[Ending]
    #: Whether the figures are of fewer jobs than the day had.
    cut_short: bool
    spec_count: int
    depth_chart: Chart = field(init=False)
    wait_chart: Chart = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth_chart", depth_chart(self.day))
        object.__setattr__(self, "wait_chart", wait_chart(self.day))

    @property
    def slots(self) -> tuple[int, int]:
        """The slots in use and all slots, of the runners that are online."""
        online = [runner for runner in self.runners if runner.status == "ONLINE"]
        busy = sum(runner.busy_slots for runner in online)  # type: ignore[attr-defined]
        return busy, sum(runner.slots for runner in online)

    @property
    def longest_wait_seconds(self) -> float | None:
        waits = (half_hour.longest_wait_seconds for half_hour in self.day)
        return max((wait for wait in waits if wait is not None), default=None)


def dashboard_of(organization: Organization, person: User) -> Dashboard:
    now = timezone.now()
    newest = organization.last_job_number
    day = figures_of_the_day(organization_id=organization.pk, newest=newest, now=now)
    return Dashboard(
        running=running_jobs(organization),
        queued=Job.objects.filter(organization=organization, status=QUEUED).count(),
        for_me=waiting_for(organization, person, now=now),
        failed=failed_lately(organization, now=now),
        drifted=drifted_lately(organization, now=now),
        runners=runners_of(organization),
        day=day.half_hours,
        endings=day.endings,
        cut_short=sum(ending.total for ending in day.endings) >= LOOKED_AT * 0.9,
        spec_count=Spec.objects.filter(organization=organization, archived_at=None).count(),
    )


def running_jobs(organization: Organization) -> list[Running]:
    """The jobs that a runner has now, the oldest first: by their claims, of which there are few."""
    claims = JobClaim.objects.filter(job__organization=organization).select_related(
        "runner", "job__spec", "job__requested_by", "job__plan"
    )
    heavy = ("job__config_snapshot", "job__result", "job__plan__summary", "job__plan__output_changes")
    held = list(claims.defer(*heavy).order_by("job_id")[:SHOWN])
    done = resources_done(claim.job_id for claim in held if claim.job.kind.changes_infrastructure)
    return [
        Running(
            claim.job,
            claim.runner.name,
            done=min(done.get(claim.job_id, 0), claim.job.plan.change_count if claim.job.plan else 10**9),
            total=claim.job.plan.change_count if claim.job.plan else 0,
        )
        for claim in held
    ]


def failed_lately(organization: Organization, *, now: datetime) -> list[Job]:
    """The newest failures, each only while no later job of its type and Spec has succeeded."""
    recent = Job.objects.filter(
        organization=organization,
        number__gt=organization.last_job_number - LOOKED_AT,
        status=FAILED,
        finished_at__gte=now - LATELY,
    )
    later = Job.objects.filter(
        spec=OuterRef("spec"), pk__gt=OuterRef("pk"), status="SUCCESS", type=OuterRef("type")
    )
    jobs = recent.filter(~Exists(later)).select_related("spec", "requested_by", "organization")
    return list(jobs.defer("config_snapshot", "result").order_by("-number")[:SHOWN])


def drifted_lately(organization: Organization, *, now: datetime) -> list[Plan]:
    """The newest plan of each Spec that found what others had changed."""
    drifted = _newest_plans(organization, now=now).filter(drift_count__gt=0, spent_at=None)
    return list(drifted.select_related("spec")[:SHOWN])


def waiting_for(organization: Organization, person: User, *, now: datetime) -> list[ForMe]:
    """Approvals this person can give, plans they requested and have not applied, what expires soon."""
    membership = Membership.objects.filter(user=person, organization=organization).first()
    if membership is None or not (membership.may(Right.APPLY) or membership.may(Right.APPROVE)):
        return []
    plans = _fitting_plans(organization, now=now)
    standings = approval_standings(plans, organization_id=organization.pk)
    tasks = [_task_for(membership, plan, standings[plan.pk]) for plan in plans]
    expiring = _expiring(organization, now=now) if membership.may(Right.APPLY) else []
    return [*(task for task in tasks if task is not None), *expiring][: 2 * SHOWN]


def _task_for(membership: Membership, plan: Plan, approvals: ApprovalStanding) -> ForMe | None:
    """Return the task that one plan is for this person, if any."""
    count, spec = plan.change_count, plan.spec
    changes = f"{count} change{'' if count == 1 else 's'}"
    is_theirs = plan.job.requested_by_id == membership.user_id
    if not approvals.missing:
        may_apply = is_theirs and membership.may(Right.APPLY)
        return ForMe("Review and apply", changes, spec, plan.created_at, plan.number) if may_apply else None
    if is_theirs:
        progress = f"{len(approvals.given)} of {approvals.needed} approvals"
        return ForMe("Waiting for approval", f"{changes}, {progress}", spec, plan.created_at, plan.number)
    if membership.user_id in {approver.pk for approver in approvals.may_approve}:
        requested = f"{changes}, requested by {plan.job.requested_by or 'Slipway'}"
        return ForMe("Review and approve", requested, spec, plan.created_at, plan.number)
    return None


def _expiring(organization: Organization, *, now: datetime) -> list[ForMe]:
    """List deployed Specs that expire soon or have expired."""
    specs = Spec.objects.filter(
        organization=organization, archived_at=None, expires_at__lt=now + SOON, deployed_at__isnull=False
    ).filter(Q(destroyed_at=None) | Q(destroyed_at__lt=F("deployed_at")))
    expiring = specs.select_related("organization").order_by("expires_at")[:SHOWN]
    return [
        ForMe("Destroy or extend", "expires", spec, spec.expires_at) for spec in expiring if spec.expires_at
    ]


def _fitting_plans(organization: Organization, *, now: datetime) -> list[Plan]:
    """List the newest plans with changes that can still be applied, as far as the database alone tells."""
    revised = Revision.objects.filter(spec=OuterRef("spec"), created_at__gt=OuterRef("created_at"))
    newest_serial = (
        StateVersion.objects.filter(spec=OuterRef("spec")).order_by("-serial").values("serial")[:1]
    )
    allowed = ExpressionWrapper(
        F("spec__plan_max_age_hours") * Value(timedelta(hours=1), output_field=DurationField()),
        output_field=DurationField(),
    )
    ends = ExpressionWrapper(F("created_at") + allowed, output_field=DateTimeField())
    plans = (
        _newest_plans(organization, now=now)
        .filter(~Exists(revised), spent_at=None, change_count__gt=0, spec__archived_at=None)
        .alias(ends=ends, newest_serial=Subquery(newest_serial))
        .filter(Q(spec__plan_max_age_hours=0) | Q(ends__gt=now))
        .filter(Q(newest_serial=None, state_serial=0) | Q(newest_serial=F("state_serial")))
    )
    return list(plans.select_related("spec__organization", "job__requested_by")[:50])


def _newest_plans(organization: Organization, *, now: datetime) -> QuerySet[Plan]:
    later = Plan.objects.filter(spec=OuterRef("spec"), pk__gt=OuterRef("pk"), speculative=False)
    lately = Plan.objects.filter(
        organization=organization, pk__gte=first_id_at(now - LATELY), speculative=False
    )
    heavy = ("summary", "output_changes", "job__config_snapshot", "job__result")
    return (
        lately.filter(~Exists(later))
        .select_related("spec__organization", "job")
        .defer(*heavy)
        .order_by("-pk")
    )


def depth_chart(day: list[HalfHour]) -> Chart:
    columns = [
        Column(
            f"{half_hour.begins_at:%H:%M} UTC: {half_hour.depth} waiting",
            half_hour.depth,
            mark=_hour(half_hour),
        )
        for half_hour in day
    ]
    return bar_chart(columns)


def wait_chart(day: list[HalfHour]) -> Chart:
    columns = [
        Column(
            f"{half_hour.begins_at:%H:%M} UTC: median {half_hour.median_wait_seconds or 0:.1f} s, "
            f"longest {half_hour.longest_wait_seconds or 0:.1f} s",
            half_hour.longest_wait_seconds or 0,
            inner=half_hour.median_wait_seconds or 0,
            mark=_hour(half_hour),
        )
        for half_hour in day
    ]
    return bar_chart(columns, unit=" s")


def _hour(half_hour: HalfHour) -> str:
    """Every sixth hour has its name under it."""
    begins: Any = half_hour.begins_at
    return f"{begins:%H}:00" if begins.hour % 6 == 0 and begins.minute < 30 else ""
