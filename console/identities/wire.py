"""The endpoints of runners for cloud identities: tokens for the cloud, and discovered resources."""

from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, HttpResponse

from console.errors import InvalidMessage, StaleClaim
from console.identities import services as identities
from console.identities.resources import store_part
from console.identities.tokens import sign_token
from console.jobs.models import JobClaim
from console.jobs.queue import Held
from console.jobs.wire import uuid_in, wire_answer
from console.live.threads import in_thread
from console.runners.requests import bearer, message, method
from console.runners.services import recognize
from runner.protocol import FoundResources, IdentityTokenAnswer, IdentityTokenRequest, JobType


@method("POST")
async def identity_token(request: HttpRequest, job_id: UUID) -> HttpResponse:
    body = message(IdentityTokenRequest, request)
    claim_id = uuid_in(body.claim_id, "claim_id")
    answer = wire_answer(await in_thread(_sign, bearer(request), job_id, claim_id))
    answer["Cache-Control"] = "no-store"
    return answer


@method("PUT")
async def resources(request: HttpRequest, job_id: UUID) -> HttpResponse:
    part = message(FoundResources, request)
    uuid_in(part.claim_id, "claim_id")
    await in_thread(_store, bearer(request), job_id, part)
    return wire_answer({})


def _sign(credential: str, job_id: UUID, claim_id: UUID) -> IdentityTokenAnswer:
    runner = recognize(credential)
    return sign_token(held=Held(job_id, claim_id, runner.id), runner=runner)


def _store(credential: str, job_id: UUID, part: FoundResources) -> None:
    runner, claim_id = recognize(credential), UUID(part.claim_id)
    with transaction.atomic():
        # Held until the part is stored: taking the job back waits, and a stale attempt has no claim.
        claim = (
            JobClaim.objects.select_for_update(of=("self",), no_key=True)
            .select_related("job__identity")
            .defer("job__config_snapshot")
            .filter(job_id=job_id, claim_id=claim_id, runner_id=runner.id)
            .first()
        )
        if claim is None:
            raise StaleClaim
        identity = claim.job.identity
        if identity is None or claim.job.type != JobType.FETCH_RESOURCES:
            raise InvalidMessage("This job does not fetch resources.")
        store_part(identity=identity, claim_id=claim_id, part=part)
        if part.is_last:
            identities.announce(identity)
