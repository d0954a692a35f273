"""The base of every socket."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer

from console.errors import SlipwayError
from console.live.threads import in_thread

#: A notification that was lost costs this much, never more.
POLL_SECONDS = 2.0
#: How often a socket checks again whether its reader may still read.
RECHECK_SECONDS = 60.0

# Close codes of our own: 4401 and 4404 as the HTTP statuses.
NOT_ALLOWED, NOT_FOUND = 4401, 4404
#: "Service restart": the page connects again, and its session decides whether it may.
CONNECT_AGAIN = 1012


class SessionsEnded(Exception):
    """The person has another password, or has signed out everywhere, since the socket was opened."""


class LiveConsumer(AsyncWebsocketConsumer):
    """One socket, one task of its own: a slow reader holds up nobody else."""

    _task: "asyncio.Task[None] | None" = None

    async def connect(self) -> None:
        try:
            await in_thread(self.authorize)
        except SlipwayError as error:
            await self.accept()  # a refusal before the handshake carries no code that the page could read
            await self.close(code=NOT_FOUND if error.status == 404 else NOT_ALLOWED)
            return
        await self.accept()
        self._task = asyncio.create_task(self._close_on_error(self.stream()))

    async def disconnect(self, code: int) -> None:
        if self._task is not None:
            self._task.cancel()

    def authorize(self) -> None:
        """Raise unless this reader may listen; called in a thread, and again every minute."""
        raise NotImplementedError

    def authorize_again(self) -> None:
        """Authorize once more, since the reader's sessions may have ended meanwhile."""
        user = self.user
        current = type(user).objects.filter(pk=user.pk).first()
        if current is None or current.get_session_auth_hash() != user.get_session_auth_hash():
            raise SessionsEnded
        self.authorize()

    async def stream(self) -> None:
        raise NotImplementedError

    @property
    def user(self) -> Any:
        return self.scope["user"]

    async def _close_on_error(self, stream: Coroutine[Any, Any, None]) -> None:
        try:
            await stream
        except SlipwayError:
            await self.close(code=NOT_ALLOWED)
        except SessionsEnded:
            await self.close(code=CONNECT_AGAIN)
        except asyncio.CancelledError:
            raise
        except Exception:
            # The page reconnects and resumes from its cursor; the log tells us why.
            await self.close(code=1011)
            raise
