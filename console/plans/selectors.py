"""Reading plans."""

from dataclasses import dataclass

from console.plans.models import Plan
from specs.models import Spec


def latest_plan_of(spec: Spec) -> Plan | None:
    """Return the newest plan that can be applied; a speculative one cannot."""
    plans = Plan.objects.filter(spec=spec, speculative=False)
    return plans.select_related("spec", "job__requested_by", "spent_by").order_by("-id").first()


@dataclass(frozen=True, slots=True)
class Drift:
    """Changes outside of Terraform that the newest plan found."""

    plan: Plan
    #: A deploy came after that plan and has reverted the drift; nothing was planned since.
    is_outdated: bool

    @property
    def count(self) -> int:
        return self.plan.drift_count


def latest_drift_of(spec: Spec) -> Drift | None:
    """Return the drift that the newest plan of any kind found; None while nothing was deployed or planned."""
    if spec.deployed_at is None or spec.destroyed_at is not None:
        return None
    plan = Plan.objects.filter(spec=spec).order_by("-id").first()
    return None if plan is None else Drift(plan, is_outdated=spec.deployed_at > plan.created_at)


@dataclass(frozen=True, slots=True)
class PlanPage:
    plans: list[Plan]
    #: The number that the next page begins below; none at the end.
    next_before: int | None


def plans_of(spec: Spec, *, before: int | None = None, limit: int = 50) -> PlanPage:
    """A spec's plans, the newest first, from below the number `before`."""
    plans = Plan.objects.filter(spec=spec).select_related("job__requested_by", "spent_by")
    if before is not None:
        plans = plans.filter(number__lt=before)
    heavy = (
        "output_changes",
        "job__config_snapshot",
        "job__result",
        "spent_by__config_snapshot",
        "spent_by__result",
    )
    rows = list(plans.defer(*heavy).order_by("-number")[: limit + 1])
    return PlanPage(rows[:limit], rows[limit - 1].number if len(rows) > limit else None)
