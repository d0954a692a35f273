"""The plans of a Spec: the list, the review of one, approving and applying it."""

from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.accounts.models import User
from console.identities.job_credentials import lifetime_warning
from console.inputs import whole_number
from console.jobs.purpose import is_refresh_only, revision_looked_at
from console.jobs.selectors import active_job_of
from console.pages.frame import PageRequest, action, is_fragment, signed_in
from console.plans import access, services
from console.plans.approvals import approval_standing
from console.plans.costs import cost_of
from console.plans.destroy_guard import guard_reasons
from console.plans.models import Plan
from console.plans.raw import raw_plan
from console.plans.review import drift_of, review_of, wanted_from
from console.plans.selectors import plans_of
from console.plans.staleness import remember_staleness
from runner.protocol import JobType
from specs.access import spec_to_view


@signed_in
def plans(request: PageRequest, org: str, spec: str) -> HttpResponse:
    """Every plan of a Spec, the newest first, and what became of each."""
    shown = spec_to_view(request.user, org, spec)
    before = request.GET.get("before", "")
    found = plans_of(shown, before=whole_number(before))
    context = {
        "spec": shown,
        "tab": "plans",
        "plans": found.plans,
        "older": found.next_before,
        "paged": before,
    }
    return render(request, "specs/plans.html", context)


#: More addresses than this are counted in the dialog, not listed.
MAX_LISTED = 200


@signed_in
def plan(request: PageRequest, org: str, spec: str, number: int) -> HttpResponse:
    """The whole page; or, as the reader gets there, more of its resources; or only what changes by itself."""
    shown = access.plan_to_view(request.user, org, spec, number)
    wanted = wanted_from(request.GET.dict())
    if is_fragment(request) and wanted.start:
        context = {"review": review_of(shown, wanted), "plan": shown, "spec": shown.spec}
        return render(request, "plans/_changes.html", context)
    context = _standing(shown, request.user)
    if not (is_fragment(request) and request.htmx.target == "plan-live"):
        context |= {"review": review_of(shown, wanted), "drift": drift_of(shown)}
    return render(request, "plans/plan.html", context)


@signed_in
def raw(request: PageRequest, org: str, spec: str, number: int) -> HttpResponse:
    """`terraform show -json`, as far as it may be shown."""
    shown = access.plan_to_view(request.user, org, spec, number)
    answer = HttpResponse(raw_plan(shown), content_type="application/json")
    answer["Content-Disposition"] = f'inline; filename="{spec}-plan-{number}.json"'
    return answer


def _standing(shown: Plan, reader: User) -> dict[str, Any]:
    """What decides whether the plan can be applied now."""
    staleness = remember_staleness(shown)
    return {
        "plan": shown,
        "spec": shown.spec,
        "staleness": None if shown.spent_by or shown.speculative else staleness,
        "approvals": approval_standing(shown),
        "guard": guard_reasons(shown),
        "refusal": services.refusal_of(shown, applied_by=reader),
        "revision_looked_at": revision_looked_at(shown.job.config_snapshot),
        "refresh_only": is_refresh_only(shown.job.config_snapshot),
        "cost": cost_of(shown),
        "active": active_job_of(shown.spec),
        "lifetime": "" if shown.spent_by or shown.speculative else _lifetime(shown),
    }


def _lifetime(shown: Plan) -> str:
    """Whether its deploy will probably outlive the credentials that it gets."""
    type = JobType.DESTROY if shown.destroy else JobType.DEPLOY
    return lifetime_warning(shown.spec, type, shown.spec.identity)


def apply(request: PageRequest, org: str, spec: str, number: int) -> HttpResponseBase:
    """The question on GET, where the plan is guarded; the deed on POST."""
    answer = request_apply if request.method == "POST" else ask_apply
    return answer(request, org, spec, number)


@signed_in
def ask_apply(request: PageRequest, org: str, spec: str, number: int) -> HttpResponse:
    asked = access.plan_to_apply(request.user, org, spec, number)
    lost = asked.losses
    context = {
        "plan": asked,
        "spec": asked.spec,
        "guard": guard_reasons(asked),
        "lost": lost[:MAX_LISTED],
        "unlisted": max(0, len(lost) - MAX_LISTED),
    }
    template = "plans/_confirm.html" if is_fragment(request) else "plans/confirm.html"
    return render(request, template, context)


@action
def request_apply(request: PageRequest, org: str, spec: str, number: int) -> str:
    plan = access.plan_to_apply(request.user, org, spec, number)
    confirmation = request.POST.get("confirmation", "")
    job = services.request_deploy(plan=plan, requested_by=request.user, confirmation=confirmation)
    return resolve_url("job", org, job.number)


@action
def approve(request: PageRequest, org: str, spec: str, number: int) -> str:
    plan = access.plan_to_approve(request.user, org, spec, number)
    services.approve_plan(plan=plan, approved_by=request.user)
    return resolve_url("plan", org, spec, number)


@action
def withdraw(request: PageRequest, org: str, spec: str, number: int) -> str:
    plan = access.plan_to_approve(request.user, org, spec, number)
    services.withdraw_approval(plan=plan, withdrawn_by=request.user)
    return resolve_url("plan", org, spec, number)
