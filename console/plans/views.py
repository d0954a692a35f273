"""Plan review, destroying, and the Spec page, which tells what the last plan found."""

from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.accounts.models import User
from console.jobs.access import job_to_view
from console.jobs.identity_lifetime import lifetime_warning
from console.jobs.purpose import is_refresh_only, revision_looked_at
from console.jobs.selectors import active_job_of, latest_jobs_of
from console.jobs.services import request_destroy as queue_destroy
from console.jobs.services import request_plan as queue_plan
from console.pages import PageRequest, action, is_fragment, signed_in
from console.plans import access, services
from console.plans.approvals import approval_standing
from console.plans.costs import cost_of
from console.plans.expiry import what_became_of
from console.plans.guard import guard_reasons, lost_by
from console.plans.inventory import inventory_of
from console.plans.models import Plan
from console.plans.pictures import picture_behind
from console.plans.raw import raw_plan
from console.plans.review import drift_of, review_of, wanted_from
from console.plans.selectors import latest_drift_of, latest_plan_of
from console.plans.staleness import remember_staleness, staleness_of
from runner.protocol import JobType
from specs.access import spec_to_operate, spec_to_view
from specs.selectors import current_revision, outputs_of

#: More addresses than this are counted in the dialog, not listed.
MAX_LISTED = 200


@signed_in
def spec(request: PageRequest, org: str, spec: str) -> HttpResponse:
    shown = spec_to_view(request.user, org, spec)
    plan = latest_plan_of(shown)
    context = {
        "spec": shown,
        "plan": plan,
        "staleness": staleness_of(plan) if plan else None,
        "approvals": approval_standing(plan) if plan and not plan.spent_by else None,
        "active": active_job_of(shown),
        "jobs": latest_jobs_of(shown),
        "outputs": outputs_of(shown),
        "revision": current_revision(shown),
        "expiry": what_became_of(shown),
        "drift": latest_drift_of(shown),
    }
    return render(request, "specs/spec.html", context)


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


@signed_in
def job_graph(request: PageRequest, org: str, number: int) -> HttpResponse:
    """The picture of what a job changes; nothing while there is no plan."""
    drawing = picture_behind(job_to_view(request.user, org, number))
    if drawing is None:
        return HttpResponse(status=204)
    return render(request, "plans/_graph.html", {"graph": drawing})


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
    lost = lost_by(asked)
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
    plan = access.plan_to_apply(request.user, org, spec, number)
    services.approve_plan(plan=plan, approved_by=request.user)
    return resolve_url("plan", org, spec, number)


@action
def withdraw(request: PageRequest, org: str, spec: str, number: int) -> str:
    plan = access.plan_to_apply(request.user, org, spec, number)
    services.withdraw_approval(plan=plan, withdrawn_by=request.user)
    return resolve_url("plan", org, spec, number)


def destroy(request: PageRequest, org: str, spec: str) -> HttpResponseBase:
    """The question on GET, the deed on POST."""
    answer = request_destroy if request.method == "POST" else ask_destroy
    return answer(request, org, spec)


@signed_in
def ask_destroy(request: PageRequest, org: str, spec: str) -> HttpResponse:
    asked = spec_to_operate(request.user, org, spec)
    found = inventory_of(asked)
    template = "specs/_destroy.html" if is_fragment(request) else "specs/destroy.html"
    context = {
        "spec": asked,
        "kept_in": found.kept_in,
        "as_of": found.as_of,
        "resource_count": len(found.addresses),
        "addresses": found.addresses[:MAX_LISTED],
        "unlisted": max(0, len(found.addresses) - MAX_LISTED),
    }
    return render(request, template, context)


@action
def request_destroy(request: PageRequest, org: str, spec: str) -> str:
    job = queue_destroy(
        spec=spec_to_operate(request.user, org, spec),
        confirmation=request.POST.get("confirmation", ""),
        requested_by=request.user,
    )
    return resolve_url("job", org, job.number)


@action
def plan_destroy(request: PageRequest, org: str, spec: str) -> str:
    """A destroy that is reviewed before it happens."""
    asked = spec_to_operate(request.user, org, spec)
    job = queue_plan(spec=asked, requested_by=request.user, destroy=True)
    return resolve_url("job", org, job.number)


@action
def look_at(request: PageRequest, org: str, spec: str, number: int) -> str:
    """A look at what some revision would do."""
    asked = spec_to_operate(request.user, org, spec)
    job = queue_plan(spec=asked, requested_by=request.user, revision=number)
    return resolve_url("job", org, job.number)
