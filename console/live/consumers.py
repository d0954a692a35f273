"""The base of every socket, and the socket that tells an organization's pages what to fetch again."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer

from console.accounts import access
from console.errors import SlipwayError
from console.live import topics
from console.live.listener import listener
from console.live.threads import in_thread

#: A notification that was lost costs this much, never more.
POLL_SECONDS = 2.0
#: How often a socket asks again whether its reader may still read.
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
        self._task = asyncio.create_task(self._guarded(self.stream()))

    async def disconnect(self, code: int) -> None:
        if self._task is not None:
            self._task.cancel()

    def authorize(self) -> None:
        """Raise unless this reader may listen; called in a thread, and again every minute."""
        raise NotImplementedError

    def authorize_again(self) -> None:
        """The same once more, for a reader whose sessions may have ended meanwhile."""
        then = self.user
        now = type(then).objects.filter(pk=then.pk).first()
        if now is None or now.get_session_auth_hash() != then.get_session_auth_hash():
            raise SessionsEnded
        self.authorize()

    async def stream(self) -> None:
        raise NotImplementedError

    @property
    def user(self) -> Any:
        return self.scope["user"]

    async def _guarded(self, stream: Coroutine[Any, Any, None]) -> None:
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


class OrganizationConsumer(LiveConsumer):
    """Says which of the organization's lists changed; the page fetches them."""

    LISTS = ("jobs", "runners", "specs", "identities")

    def authorize(self) -> None:
        self.organization = access.organization_to_view(self.user, self.scope["url_route"]["kwargs"]["slug"])

    async def stream(self) -> None:
        names = {topics.organization(self.organization.pk, what): what for what in self.LISTS}
        loop = asyncio.get_running_loop()
        checked_at = loop.time()
        async with listener().subscribe(names) as subscription:
            while True:
                changed = await subscription.wait(seconds=RECHECK_SECONDS)
                if loop.time() - checked_at > RECHECK_SECONDS:
                    await in_thread(self.authorize_again)
                    checked_at = loop.time()
                if changed:
                    await self.send(text_data=_changed(sorted(names[topic] for topic in changed)))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if text_data and '"ping"' in text_data:
            await self.send(text_data='{"type":"pong"}')


def _changed(lists: list[str]) -> str:
    return '{"type":"changed","topics":[' + ",".join(f'"{name}"' for name in lists) + "]}"
