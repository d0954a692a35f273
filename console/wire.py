"""What every endpoint for runners shares: who is calling, what was sent, how refusals are answered.

Runners' requests pass none of the browser's middleware (sessions, CSRF, CSP): they carry a
credential, and the console answers thousands of them a minute.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import orjson
from django.core.exceptions import RequestAborted, RequestDataTooBig
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponse
from django.urls import get_resolver

from console.errors import InvalidMessage, RunnerUnknown, SlipwayError
from console.live.threads import in_thread
from console.middleware import response_to
from console.runners.services import KnownRunner, recognize
from runner.protocol import ProtocolError, from_wire

logger = logging.getLogger("slipway.wire")

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


def without_nul(value: Any) -> Any:
    """PostgreSQL keeps every character but this one, and one in an error message must not lose a report."""
    match value:
        case str():
            return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
        case list():
            return [without_nul(one) for one in value]
        case dict():
            return {without_nul(key): without_nul(one) for key, one in value.items()}
    return value


def bearer(request: HttpRequest) -> str:
    scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not credential:
        raise RunnerUnknown("Send the runner credential as `Authorization: Bearer …`.")
    return credential.strip()


async def authenticated(request: HttpRequest) -> KnownRunner:
    return await in_thread(recognize, bearer(request))


class WireHandler(ASGIHandler):
    """Django's request handler with no middleware, no signals and the runners' own URLs.

    For the signals Django starts a thread or two at each request, which costs more than answering it. What
    they are for, giving database connections back, `in_thread` does.
    """

    URLS = "console.urls_wire"
    #: Requests that wait for something to happen.
    HELD_PATHS = frozenset({"/api/jobs/claim"})

    def load_middleware(self, is_async: bool = False) -> None:
        pass

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with body:
            request, _ = self.create_request(scope, body)
            if request is None:
                await self._send(HttpResponse(status=400), send)
                return
            if request.path_info in self.HELD_PATHS:
                await self._answer_unless_gone(request, receive, send)
            else:
                await self._send(await self._answer(request), send)

    async def _answer_unless_gone(self, request: HttpRequest, receive: Any, send: Any) -> None:
        """Nobody is left to take the answer of a claim request whose runner has gone."""
        answer = asyncio.create_task(self._answer(request))
        gone = asyncio.create_task(receive())
        try:
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                await self._send(answer.result(), send)
        finally:
            answer.cancel()
            gone.cancel()

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        try:
            view, args, kwargs = get_resolver(self.URLS).resolve(request.path_info)
            response: HttpResponse = await view(request, *args, **kwargs)
        except Exception as error:
            return response_to(request, error)
        return response

    async def _send(self, response: HttpResponse, send: Any) -> None:
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.items()]
        if response.status_code != 204:
            headers.append((b"Content-Length", str(len(response.content)).encode()))
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": response.content})
