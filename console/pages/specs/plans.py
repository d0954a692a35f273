"""The plans of a Spec: the list, the review of one, approving and applying it."""

from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.accounts.models import User
from console.identities.job_credentials import lifetime_warning
from console.inputs import whole_number
from console.jobs.intent import is_refresh_only, speculative_revision
from console.jobs.selectors import active_job_of
from console.pages.frame import PageRequest, action, is_fragment, signed_in
from console.plans import access, services
from console.plans.approvals import approval_standing
from console.plans.costs import cost_of
from console.plans.destroy_guard import guard_reasons
from console.plans.documents import raw_plan
from console.plans.models import Plan
from console.plans.review import drift_of, filters_from, review_of
from console.plans.selectors import plans_of
from console.plans.staleness import remember_staleness
from runner.protocol import JobType
from specs.access import spec_to_view


@signed_in
def plans(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    """Every plan of a Spec, the newest first, and what became of each."""
    spec = spec_to_view(request.user, org, spec_slug)
    before = request.GET.get("before", "")
    page = plans_of(spec, before=whole_number(before))
    context = {
        "spec": spec,
        "tab": "plans",
        "plans": page.plans,
        "older": page.next_before,
        "paged": before,
    }
    return render(request, "specs/plans.html", context)


#: More addresses than this are counted in the dialog, not listed.
MAX_LISTED = 200


@signed_in
def plan(request: PageRequest, org: str, spec_slug: str, number: int) -> HttpResponse:
    """The whole page; or, as the reader gets there, more of its resources; or only what changes by itself."""
    plan = access.plan_to_view(request.user, org, spec_slug, number)
    filters = filters_from(request.GET.dict())
    if is_fragment(request) and filters.start:
        context = {"review": review_of(plan, filters), "plan": plan, "spec": plan.spec}
        return render(request, "plans/_changes.html", context)
    context = _standing(plan, request.user)
    if not (is_fragment(request) and request.htmx.target == "plan-live"):
        context |= {"review": review_of(plan, filters), "drift": drift_of(plan)}
    return render(request, "plans/plan.html", context)


@signed_in
def raw(request: PageRequest, org: str, spec_slug: str, number: int) -> HttpResponse:
    """`terraform show -json`, as far as it may be shown."""
    plan = access.plan_to_view(request.user, org, spec_slug, number)
    answer = HttpResponse(raw_plan(plan), content_type="application/json")
    answer["Content-Disposition"] = f'inline; filename="{spec_slug}-plan-{number}.json"'
    return answer


def _standing(plan: Plan, reader: User) -> dict[str, Any]:
    """Everything that decides whether the plan can be applied now."""
    staleness = remember_staleness(plan)
    return {
        "plan": plan,
        "spec": plan.spec,
        "staleness": None if plan.spent_by or plan.speculative else staleness,
        "approvals": approval_standing(plan),
        "guard": guard_reasons(plan),
        "refusal": services.refusal_of(plan, applied_by=reader),
        "revision_looked_at": speculative_revision(plan.job.config_snapshot),
        "refresh_only": is_refresh_only(plan.job.config_snapshot),
        "cost": cost_of(plan),
        "active": active_job_of(plan.spec),
        "lifetime": "" if plan.spent_by or plan.speculative else _lifetime(plan),
    }


def _lifetime(plan: Plan) -> str:
    """Warn of an apply that will probably outlive its credentials."""
    type = JobType.DESTROY if plan.destroy else JobType.DEPLOY
    return lifetime_warning(plan.spec, type, plan.spec.identity)


def apply(request: PageRequest, org: str, spec_slug: str, number: int) -> HttpResponseBase:
    """Ask for confirmation on GET, where the destroy guard wants it; apply on POST."""
    answer = request_apply if request.method == "POST" else ask_apply
    return answer(request, org, spec_slug, number)


@signed_in
def ask_apply(request: PageRequest, org: str, spec_slug: str, number: int) -> HttpResponse:
    plan = access.plan_to_apply(request.user, org, spec_slug, number)
    lost = plan.losses
    context = {
        "plan": plan,
        "spec": plan.spec,
        "guard": guard_reasons(plan),
        "lost": lost[:MAX_LISTED],
        "unlisted": max(0, len(lost) - MAX_LISTED),
    }
    template = "plans/_confirm.html" if is_fragment(request) else "plans/confirm.html"
    return render(request, template, context)


@action
def request_apply(request: PageRequest, org: str, spec_slug: str, number: int) -> str:
    plan = access.plan_to_apply(request.user, org, spec_slug, number)
    confirmation = request.POST.get("confirmation", "")
    job = services.request_deploy(plan=plan, requested_by=request.user, confirmation=confirmation)
    return resolve_url("job", org, job.number)


@action
def approve(request: PageRequest, org: str, spec_slug: str, number: int) -> str:
    plan = access.plan_to_approve(request.user, org, spec_slug, number)
    services.approve_plan(plan=plan, approved_by=request.user)
    return resolve_url("plan", org, spec_slug, number)


@action
def withdraw(request: PageRequest, org: str, spec_slug: str, number: int) -> str:
    plan = access.plan_to_approve(request.user, org, spec_slug, number)
    services.withdraw_approval(plan=plan, withdrawn_by=request.user)
    return resolve_url("plan", org, spec_slug, number)
