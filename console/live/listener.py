"""The LISTEN bridge: one connection per process wakes everyone in it who waits for a topic."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

import psycopg

from console.live.connection import conninfo
from console.live.publish import CHANNEL

RECONNECT_SECONDS = 1.0

logger = logging.getLogger("slipway.live")


class Subscription:
    """The topics that one waiter has been woken for and has not handled yet."""

    def __init__(self) -> None:
        self._woken: set[str] = set()
        self._event = asyncio.Event()
        self._woken_at = 0.0

    @property
    def woken_at(self) -> float:
        """The time of the notification that ended the last wait, the same for everyone that it woke.

        A read of the database after this moment serves all of them.
        """
        return self._woken_at

    def wake(self, topic: str, at: float) -> None:
        self._woken.add(topic)
        self._woken_at = at
        self._event.set()

    async def wait(self, *, seconds: float) -> set[str]:
        """Return the topics that changed since the last call; none when nothing did within `seconds`."""
        try:
            await asyncio.wait_for(self._event.wait(), max(seconds, 0))
        except TimeoutError:
            # No notification came, so a read by anyone since the middle of the wait is recent enough.
            self._woken_at = asyncio.get_running_loop().time() - seconds / 2
            return set()
        self._event.clear()
        woken, self._woken = self._woken, set()
        return woken


class Listener:
    """The process's LISTEN connection, open while anyone is subscribed."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, set[Subscription]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    @asynccontextmanager
    async def subscribe(self, topics: Iterable[str]) -> AsyncIterator[Subscription]:
        subscription, topics = Subscription(), tuple(topics)
        for topic in topics:
            self._subscriptions[topic].add(subscription)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        try:
            yield subscription
        finally:
            for topic in topics:
                self._subscriptions[topic].discard(subscription)
                if not self._subscriptions[topic]:
                    del self._subscriptions[topic]

    async def ready(self) -> None:
        """Wait until notifications arrive; for those who publish right after they subscribe."""
        await self._ready.wait()

    async def _run(self) -> None:
        while True:
            try:
                await self._listen()
            except psycopg.Error as error:
                logger.warning("the LISTEN connection was lost, connecting again: %s", error)
            self._ready.clear()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self) -> None:
        async with await psycopg.AsyncConnection.connect(conninfo(), autocommit=True) as connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            self._ready.set()
            self._wake_everyone()  # notifications may have been missed
            async for notification in connection.notifies():
                self._wake(notification.payload)

    def _wake(self, topic: str) -> None:
        now = asyncio.get_running_loop().time()
        for subscription in self._subscriptions.get(topic, ()):
            subscription.wake(topic, now)

    def _wake_everyone(self) -> None:
        for topic in list(self._subscriptions):
            self._wake(topic)


_listeners: WeakKeyDictionary[asyncio.AbstractEventLoop, Listener] = WeakKeyDictionary()


def listener() -> Listener:
    """Return the listener of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _listeners:
        _listeners[loop] = Listener()
    return _listeners[loop]
