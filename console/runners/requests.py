"""Authentication, messages and refusals, which all endpoints for runners share."""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import orjson
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse

from console.errors import InvalidMessage, RunnerUnknown, SlipwayError
from console.inputs import without_nul
from console.live.threads import in_thread
from console.middleware import response_to
from console.runners.services import KnownRunner, recognize
from runner.protocol import ProtocolError, from_wire

Message = TypeVar("Message")
View = Callable[..., Coroutine[Any, Any, HttpResponse]]


def method(*methods: str) -> Callable[[View], View]:
    """Accept these methods only, and answer every refusal with a problem document."""

    def decorate(view: View) -> View:
        @functools.wraps(view)
        async def handle(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.method not in methods:
                return HttpResponse(status=405, headers={"Allow": ", ".join(methods)})
            try:
                return await view(request, *args, **kwargs)
            except (SlipwayError, RequestDataTooBig) as error:
                return response_to(request, error)

        return handle

    return decorate


def message(kind: type[Message], request: HttpRequest) -> Message:
    """The request's body as a protocol message."""
    try:
        value = orjson.loads(request.body)
        return from_wire(kind, without_nul(value) if b"\\u0000" in request.body else value)
    except orjson.JSONDecodeError as error:
        raise InvalidMessage(f"The body is not JSON: {error}") from error
    except ProtocolError as error:
        raise InvalidMessage(str(error)) from error


def bearer(request: HttpRequest) -> str:
    scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not credential:
        raise RunnerUnknown("Send the runner credential as `Authorization: Bearer …`.")
    return credential.strip()


async def authenticated(request: HttpRequest) -> KnownRunner:
    return await in_thread(recognize, bearer(request))
