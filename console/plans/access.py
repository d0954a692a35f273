"""The only doors to a plan."""

from typing import Any
from uuid import UUID

from console.accounts.access import require_right
from console.accounts.rights import Right
from console.errors import NotFound
from console.plans.models import Plan
from specs.access import require_unarchived, spec_to_view
from specs.models import Spec

#: Read with every plan: its pages and answers name these.
RELATED = ("organization", "spec__organization", "spec__pool", "job__requested_by", "spent_by")


def plan_to_view(user: Any, org_slug: str, spec_slug: str, number: int) -> Plan:
    return _plan_of(spec_to_view(user, org_slug, spec_slug), number)


def plan_to_apply(user: Any, org_slug: str, spec_slug: str, number: int) -> Plan:
    require_right(user, org_slug, Right.APPLY)
    return _plan_of(require_unarchived(spec_to_view(user, org_slug, spec_slug)), number)


def plan_to_approve(user: Any, org_slug: str, spec_slug: str, number: int) -> Plan:
    """Approve a plan, or withdraw one's own approval."""
    require_right(user, org_slug, Right.APPROVE)
    return _plan_of(require_unarchived(spec_to_view(user, org_slug, spec_slug)), number)


def plan_to_view_by_id(user: Any, plan_id: UUID) -> Plan:
    return _plan_by_id(user, plan_id, Right.SEE)


def plan_to_apply_by_id(user: Any, plan_id: UUID) -> Plan:
    return _plan_by_id(user, plan_id, Right.APPLY)


def plan_to_approve_by_id(user: Any, plan_id: UUID) -> Plan:
    return _plan_by_id(user, plan_id, Right.APPROVE)


def _plan_by_id(user: Any, plan_id: UUID, right: Right) -> Plan:
    plan = Plan.objects.select_related(*RELATED).filter(pk=plan_id).first()
    if plan is None:
        raise NotFound
    require_right(user, plan.spec.organization.slug, right)
    return plan


def _plan_of(spec: Spec, number: int) -> Plan:
    plan = Plan.objects.select_related(*RELATED).filter(spec=spec, number=number).first()
    if plan is None:
        raise NotFound
    return plan
