"""Making a Spec from its form, and planning it at once: planning stands above Specs, so this does too."""

from django.db import transaction
from django.shortcuts import resolve_url

from console.jobs.services import request_plan
from console.pages import PageRequest, action
from specs.views import create_from


@action
def create_spec(request: PageRequest, org: str) -> str:
    """Both or neither: what cannot be planned is refused before the Spec exists."""
    with transaction.atomic():
        spec = create_from(request, org)
        if request.POST.get("then") != "plan":
            return resolve_url("spec", org, spec.slug)
        job = request_plan(spec=spec, requested_by=request.user)
    return resolve_url("job", org, job.number)
