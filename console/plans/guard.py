"""The destroy guard: when applying a plan asks for more than a click.

A spec sets it as `{"share": 0.3, "types": ["aws_db_*"]}`: destroying or replacing more than that share of the
resources in the state, or any resource of such a type, needs the spec's name to be typed, and on a protected
spec an approval. A plan that destroys everything always does.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from console.errors import ConfirmationMismatch
from console.plans.models import Plan

DESTRUCTIVE = ("delete", "replace")
#: More than this is counted, not listed.
LISTED = 5


def guard_reasons(plan: Plan) -> list[str]:
    """Why this plan is guarded, a sentence each; empty when a click is enough."""
    lost = lost_by(plan)
    if plan.destroy:
        return [f"It destroys everything that {plan.spec.name} made: {_resources(len(lost))}."]
    return [*_share_reason(plan, lost), *_type_reasons(plan, lost)]


@dataclass(frozen=True, slots=True)
class Lost:
    """A resource that the plan destroys or replaces."""

    address: str
    type: str
    action: str
    deposed: bool


def lost_by(plan: Plan) -> list[Lost]:
    """Read once for each plan in hand: what it loses decides over approvals, confirmation and the page."""
    known: list[Lost] | None = getattr(plan, "_lost", None)
    if known is None:
        rows = plan.rows.filter(drifted=False, action__in=DESTRUCTIVE).order_by("position")
        fields = rows.values_list("address", "type", "action", "body__deposed")
        known = [Lost(address, type, action, bool(deposed)) for address, type, action, deposed in fields]
        plan._lost = known  # type: ignore[attr-defined]
    return known


def guarded_types(plan: Plan) -> list[str]:
    """Which types among those that are lost the spec guards."""
    patterns = plan.spec.destroy_guard.get("types") or []
    types = {one.type for one in lost_by(plan)}
    return sorted(type for type in types if any(fnmatchcase(type, pattern) for pattern in patterns))


def require_confirmation(plan: Plan, confirmation: str) -> None:
    """Refuse a guarded plan unless the name was typed. Checked here: a page can be passed by."""
    reasons = guard_reasons(plan)
    if reasons and confirmation != plan.spec.name:
        typed = (
            f"The name that was typed is not {plan.spec.name!r}." if confirmation else "No name was typed."
        )
        raise ConfirmationMismatch(
            f"{' '.join(reasons)} {typed} Nothing was done; type {plan.spec.name!r} to confirm.",
            guard=reasons,
        )


def _share_reason(plan: Plan, lost: list[Lost]) -> list[str]:
    share = plan.spec.destroy_guard.get("share")
    current = [one for one in lost if not one.deposed]
    if share is None or not current or len(current) <= share * plan.resource_count:
        return []
    lost_of = f"{len(current)} of {_resources(plan.resource_count)}"
    return [f"It destroys or replaces {lost_of}; more than {share:.0%} is guarded."]


def _type_reasons(plan: Plan, lost: list[Lost]) -> list[str]:
    types = guarded_types(plan)
    guarded = [one.address for one in lost if one.type in types]
    if not guarded:
        return []
    more = f" and {len(guarded) - LISTED} more" if len(guarded) > LISTED else ""
    return [f"It destroys or replaces {', '.join(guarded[:LISTED])}{more}, of a guarded type."]


def _resources(count: int) -> str:
    return "1 resource" if count == 1 else f"{count} resources"
