"""The page of one Spec: what its last plan found, its jobs and outputs, and the buttons."""

from django.http import HttpResponse
from django.shortcuts import redirect, render, resolve_url

from console.errors import BadInput, SlipwayError
from console.jobs.selectors import active_job_of, latest_jobs_of
from console.jobs.services import request_plan as queue_plan
from console.pages.frame import PageRequest, action, is_fragment, signed_in
from console.pages.specs.frame import tab_context
from console.plans.approvals import approval_standing
from console.plans.expiry import describe_expiry_outcome
from console.plans.selectors import latest_drift_of, latest_plan_of
from console.plans.staleness import staleness_of
from console.state.selectors import newest_version
from specs.access import spec_to_plan, spec_to_read_secrets, spec_to_view
from specs.outputs import reveal_output
from specs.selectors import current_revision, outputs_of


@signed_in
def spec(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    spec = spec_to_view(request.user, org, spec_slug)
    plan = latest_plan_of(spec)
    context = {
        "spec": spec,
        "plan": plan,
        "staleness": staleness_of(plan) if plan else None,
        "approvals": approval_standing(plan) if plan and not plan.spent_by else None,
        "active": active_job_of(spec),
        "jobs": latest_jobs_of(spec),
        "outputs": outputs_of(spec),
        "revision": current_revision(spec),
        "expiry": describe_expiry_outcome(spec),
        "drift": latest_drift_of(spec),
    }
    return render(request, "specs/spec.html", context)


@action
def request_plan(request: PageRequest, org: str, spec_slug: str) -> str:
    job = queue_plan(spec=spec_to_plan(request.user, org, spec_slug), requested_by=request.user)
    return resolve_url("job", org, job.number)


@signed_in
def resources(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    """The resources in the newest state; where there is none yet, what the page of state says about that."""
    newest = newest_version(spec_to_view(request.user, org, spec_slug))
    return (
        redirect("state-version", org, spec_slug, newest.serial)
        if newest
        else redirect("state", org, spec_slug)
    )


@signed_in
def reveal(request: PageRequest, org: str, spec_slug: str, name: str) -> HttpResponse:
    """The value of a sensitive output, in the place where it was hidden. On record."""
    if request.method != "POST":
        raise BadInput("A sensitive output is revealed by its button.")
    spec = spec_to_read_secrets(request.user, org, spec_slug)
    try:
        value = reveal_output(spec=spec, name=name, revealed_to=request.user)
    except SlipwayError as error:
        if not is_fragment(request):
            raise
        return render(request, "_refusal.html", {"error": error}, status=error.status)
    template = "specs/_revealed.html" if is_fragment(request) else "specs/revealed.html"
    return render(request, template, {**tab_context(spec, "overview"), "name": name, "value": value})
