"""The destroy guard: when applying a plan needs more than a click.

A Spec sets it as `{"share": 0.3, "types": ["*_database"]}`: destroying or replacing more than that share of
the resources in the state, or any resource of such a type, needs the Spec's name to be typed, and an approval
on a protected Spec. A plan that destroys everything always does.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from console.errors import ConfirmationMismatch
from console.plans.models import DESTRUCTIVE, Loss, Plan, PlanChange

#: More than this is counted, not listed.
LISTED = 5


def guard_reasons(plan: Plan) -> list[str]:
    """Explain in a sentence each why this plan is guarded; an empty list when a click is enough."""
    if plan.destroy:
        return [f"It destroys everything that {plan.spec.name} created: {_resources(len(plan.losses))}."]
    return [*_share_reason(plan), *_type_reasons(plan)]


def guarded_types(plan: Plan) -> list[str]:
    """List the types that the Spec guards among those that the plan destroys or replaces."""
    patterns = plan.spec.destroy_guard.get("types") or []
    types = {loss.type for loss in plan.losses}
    return sorted(type for type in types if any(fnmatchcase(type, pattern) for pattern in patterns))


def prefetch_losses(plans: Iterable[Plan]) -> None:
    """Read what several plans destroy or replace in one statement."""
    by_plan = {plan.pk: plan for plan in plans}
    for plan in by_plan.values():
        plan.losses = []
    if not by_plan:
        return
    rows = PlanChange.objects.filter(plan_id__in=by_plan, drifted=False, action__in=DESTRUCTIVE)
    fields = rows.order_by("position").values_list("plan_id", "address", "type", "action", "body__deposed")
    for plan_id, address, type, action, deposed in fields:
        by_plan[plan_id].losses.append(Loss(address, type, action, bool(deposed)))


def require_confirmation(plan: Plan, confirmation: str) -> None:
    """Refuse a guarded plan unless the Spec's name was typed. A form could be bypassed, this cannot."""
    reasons = guard_reasons(plan)
    if reasons and confirmation != plan.spec.name:
        mismatch = "The name does not match." if confirmation else "No name was typed."
        raise ConfirmationMismatch(
            f"{' '.join(reasons)} {mismatch} Nothing was changed; type {plan.spec.name!r} to confirm.",
            guard=reasons,
        )


def _share_reason(plan: Plan) -> list[str]:
    share = plan.spec.destroy_guard.get("share")
    current = [loss for loss in plan.losses if not loss.deposed]
    if share is None or not current or len(current) <= share * plan.resource_count:
        return []
    part = f"{len(current)} of {_resources(plan.resource_count)}"
    return [f"It destroys or replaces {part}; more than {share:.0%} needs confirmation."]


def _type_reasons(plan: Plan) -> list[str]:
    types = guarded_types(plan)
    addresses = [loss.address for loss in plan.losses if loss.type in types]
    if not addresses:
        return []
    more = f" and {len(addresses) - LISTED} more" if len(addresses) > LISTED else ""
    return [f"It destroys or replaces {', '.join(addresses[:LISTED])}{more}, of a guarded type."]


def _resources(count: int) -> str:
    return "1 resource" if count == 1 else f"{count} resources"
