"""The endpoints of runners about themselves: registration, hello, a new credential, and goodbye."""

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.utils import timezone

from console.errors import InvalidMessage
from console.live.threads import in_thread
from console.runners import services
from console.runners.requests import authenticated, bearer, message, method
from runner.protocol import (
    Goodbye,
    HelloAnswer,
    RegistrationAnswer,
    RegistrationRequest,
    RunnerFacts,
    to_wire,
)


@method("POST")
async def register(request: HttpRequest) -> JsonResponse:
    body = message(RegistrationRequest, request)
    if not body.name.strip():
        raise InvalidMessage("name: a runner needs a name by which people know it")
    runner, credential = await in_thread(
        services.register_runner, token=body.token, name=body.name[:100], facts=body.facts
    )
    answer = RegistrationAnswer(runner_id=str(runner.pk), name=runner.name, credential=credential)
    return JsonResponse(to_wire(answer), status=201)


@method("POST")
async def hello(request: HttpRequest) -> JsonResponse:
    facts = message(RunnerFacts, request)
    sender = await authenticated(request)
    runner = await in_thread(
        services.greet_runner, runner_id=sender.id, facts=facts, credential=bearer(request)
    )
    answer = HelloAnswer(
        runner_id=str(runner.pk),
        name=runner.name,
        organization=runner.organization.slug,
        pools=[pool.name for pool in runner.pools.all()],
        server_time=timezone.now().isoformat(),
        lease_seconds=settings.SLIPWAY_LEASE_SECONDS,
    )
    return JsonResponse(to_wire(answer))


@method("POST")
async def rotate(request: HttpRequest) -> JsonResponse:
    await authenticated(request)
    answer = await in_thread(services.rotate_credential, credential=bearer(request))
    return JsonResponse(to_wire(answer), status=201)


@method("POST")
async def goodbye(request: HttpRequest) -> JsonResponse:
    body = message(Goodbye, request)
    if not body.start_id:
        raise InvalidMessage("start_id: say which start has ended, as its hello did")
    await in_thread(services.say_goodbye, credential=bearer(request), start_id=body.start_id)
    return JsonResponse({})
