"""Django's request handler for runners, without the middleware for browsers.

Runners carry a credential instead of a session, and the console answers thousands of their requests a minute.
"""

import asyncio
from typing import Any

from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponse
from django.urls import get_resolver

from console.middleware import response_to


class WireHandler(ASGIHandler):
    """Django's request handler with no middleware, no signals and the runners' own URLs.

    Signals make Django start a thread or two at each request, which costs more than the answer. They return
    database connections to the pool; `in_thread` does that here.
    """

    URLS = "console.urls_wire"
    #: Paths of long-poll requests.
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
        """Answer a long-poll request, or drop it once its runner has disconnected."""
        answer = asyncio.create_task(self._answer(request))
        disconnect = asyncio.create_task(receive())
        try:
            await asyncio.wait((answer, disconnect), return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                await self._send(answer.result(), send)
        finally:
            answer.cancel()
            disconnect.cancel()

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
