"""Runners' requests about plans: a PLAN uploads one, a DEPLOY downloads the one it applies."""

import json
from contextlib import closing
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError

from console.errors import InvalidMessage, NotFound, StaleClaim
from console.jobs.models import Job
from console.live.threads import in_thread
from console.plans.models import PlanFile
from console.plans.services import UploadedPlan, store_plan
from console.runners.requests import bearer, method
from console.runners.services import recognize
from console.vault import unseal

FINGERPRINT = {
    "state_lineage": str,
    "state_serial": int,
    "terraform_version": str,
    "provider_lock_sha256": str,
}


@method("PUT", "GET")
async def plan_file(request: HttpRequest, job_id: UUID) -> HttpResponse:
    return await in_thread(_upload if request.method == "PUT" else _download, request, job_id)


def _upload(request: HttpRequest, job_id: UUID) -> HttpResponse:
    runner = recognize(bearer(request))
    plan = store_plan(
        job_id=job_id, claim_id=_claim_id(request), runner_id=runner.id, uploaded=_read_upload(request)
    )
    return JsonResponse({"plan_id": str(plan.pk), "number": plan.number}, status=201)


def _download(request: HttpRequest, job_id: UUID) -> HttpResponse:
    runner = recognize(bearer(request))
    job = Job.objects.filter(
        pk=job_id, claim__claim_id=_claim_id(request), claim__runner_id=runner.id
    ).first()
    if job is None:
        raise StaleClaim
    files = PlanFile.objects.filter(plan__deploys=job).first()
    if files is None:
        raise NotFound("This job applies no plan.")
    body = unseal(files.sealed_file, context=f"plan-file:{files.plan_id}")
    return HttpResponse(body, content_type="application/octet-stream")


def _read_upload(request: HttpRequest) -> UploadedPlan:
    # Django reads forms of POST requests only; the parser itself takes any.
    try:
        fields, files = request.parse_file_upload(request.META, request)
        return UploadedPlan(
            file=_file(files, "plan"),
            json=_file(files, "json"),
            provider_lock=_file(files, "lock").decode(),
            **_fingerprint(fields.get("fingerprint", "")),
        )
    except (MultiPartParserError, UnicodeDecodeError) as error:
        raise InvalidMessage(f"The upload cannot be read: {error}") from error


def _file(files: Any, name: str) -> bytes:
    part = files.get(name)
    if part is None:
        raise InvalidMessage(f"{name}: is required")
    with closing(part):  # a large one is a file on the disk
        content: bytes = part.read()
    return content


def _fingerprint(text: str) -> dict[str, Any]:
    try:
        fingerprint = json.loads(text)
        values = {name: fingerprint[name] for name in FINGERPRINT}
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidMessage(f"fingerprint: expected a JSON object with {', '.join(FINGERPRINT)}") from error
    for name, kind in FINGERPRINT.items():
        if not isinstance(values[name], kind):
            raise InvalidMessage(f"fingerprint.{name}: expected {kind.__name__}")
    return values


def _claim_id(request: HttpRequest) -> UUID:
    try:
        return UUID(request.GET.get("claim_id", ""))
    except ValueError as error:
        raise InvalidMessage("claim_id: expected a UUID") from error
