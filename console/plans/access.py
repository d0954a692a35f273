"""The only doors to a plan."""

from typing import Any
from uuid import UUID

from console.accounts.access import organization_to_operate, organization_to_view
from console.errors import NotFound
from console.plans.models import Plan
from specs.access import spec_to_operate, spec_to_view
from specs.models import Spec

#: What every page and answer about a plan tells.
SHOWN = ("organization", "spec__organization", "spec__pool", "job__requested_by", "spent_by")


def plan_to_view(user: Any, org_slug: str, spec_slug: str, number: int) -> Plan:
    return _plan(spec_to_view(user, org_slug, spec_slug), number)


def plan_to_apply(user: Any, org_slug: str, spec_slug: str, number: int) -> Plan:
    return _plan(spec_to_operate(user, org_slug, spec_slug), number)


def plan_to_view_by_id(user: Any, plan_id: UUID) -> Plan:
    plan = Plan.objects.select_related(*SHOWN).filter(pk=plan_id).first()
    if plan is None:
        raise NotFound
    organization_to_view(user, plan.spec.organization.slug)
    return plan


def plan_to_apply_by_id(user: Any, plan_id: UUID) -> Plan:
    plan = plan_to_view_by_id(user, plan_id)
    organization_to_operate(user, plan.spec.organization.slug)
    return plan


def _plan(spec: Spec, number: int) -> Plan:
    plan = Plan.objects.select_related(*SHOWN).filter(spec=spec, number=number).first()
    if plan is None:
        raise NotFound
    return plan
