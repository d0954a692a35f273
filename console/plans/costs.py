"""The cost of a plan, as its runner's Infracost estimated it. Without an estimate there is no figure."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from console.plans.models import Plan

AMOUNTS = ("monthly_before", "monthly_after", "monthly_delta")


@dataclass(frozen=True, slots=True)
class Cost:
    """The estimate in whole cents, or why there is none."""

    currency: str = ""
    monthly_before: Decimal = Decimal(0)
    monthly_after: Decimal = Decimal(0)
    monthly_delta: Decimal = Decimal(0)
    error: str = ""


def cost_of(plan: Plan) -> Cost | None:
    """Return what the job reported; None when its runner has no Infracost."""
    reported = (plan.job.result or {}).get("cost")
    if not isinstance(reported, dict):
        return None
    if reported.get("error"):
        return Cost(error=str(reported["error"]))
    try:
        before, after, delta = (_cents(reported[name]) for name in AMOUNTS)
    except (KeyError, InvalidOperation):
        return Cost(error="The runner's estimate cannot be read.")
    currency = str(reported.get("currency", ""))[:8]
    return Cost(currency=currency, monthly_before=before, monthly_after=after, monthly_delta=delta)


def as_json(cost: Cost | None) -> dict[str, Any] | None:
    if cost is None:
        return None
    if cost.error:
        return {"error": cost.error}
    return {
        "currency": cost.currency,
        "monthly_before": str(cost.monthly_before),
        "monthly_after": str(cost.monthly_after),
        "monthly_delta": str(cost.monthly_delta),
    }


def _cents(amount: Any) -> Decimal:
    return Decimal(str(amount)).quantize(Decimal("0.01"))
