"""Publishing: `publish_on_commit` is the only way to push.

NOTIFY takes a server-wide lock at commit, so it never runs inside the transaction that made the
change. A thread of its own sends topics in batches: after a quiet moment at once, then all that have
come together every `PAUSE_SECONDS`, and the same topic at most every `QUIET_SECONDS`. A notification
that is lost costs latency only: listeners also poll.
"""

import atexit
import logging
import threading
import time
from collections.abc import Iterable

import psycopg
from django.db import connection, transaction

from console.live.connection import conninfo

CHANNEL = "slipway"
#: Faster than the eye, and the busiest log wakes its viewers 40 times a second.
QUIET_SECONDS = 0.025
#: However many jobs move, a process notifies at most 100 times a second.
PAUSE_SECONDS = 0.010
#: A notification does not survive a restart anyway, so its commit need not wait for the disk.
WITHOUT_WAITING = "-c synchronous_commit=off"

logger = logging.getLogger("slipway.live")


def publish_on_commit(*topics: str) -> None:
    """Notify listeners of these topics, once the change is committed."""
    if connection.in_atomic_block:
        transaction.on_commit(lambda: publisher.publish(topics))
    else:
        publisher.publish(topics)


class Publisher:
    """The thread that sends NOTIFY, with a connection of its own."""

    def __init__(self) -> None:
        self._waiting: dict[str, None] = {}
        self._sent_at: dict[str, float] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._connection: psycopg.Connection | None = None
        self._stopping = False

    def publish(self, topics: Iterable[str]) -> None:
        with self._changed:
            self._waiting.update(dict.fromkeys(topics))
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
                self._thread.start()
                atexit.register(self.stop)
            self._changed.notify()

    def stop(self) -> None:
        """Send the waiting topics, then end."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout=2)
            self._thread = None
        self._stopping = False

    def _run(self) -> None:
        while not self._stopping or self._waiting:
            with self._changed:
                due, wait = self._due()
                if not due:
                    if self._stopping:
                        wait = 0 if wait is None else wait
                    self._changed.wait(wait)
                    continue
            self._send(due)
            time.sleep(PAUSE_SECONDS)
        self._close()

    def _due(self) -> tuple[list[str], float | None]:
        """Return the topics to send now, or the time until the next one may be sent."""
        now = time.monotonic()
        free_at = {topic: self._sent_at.get(topic, 0.0) + QUIET_SECONDS for topic in self._waiting}
        due = [topic for topic, at in free_at.items() if at <= now]
        for topic in due:
            del self._waiting[topic]
            self._sent_at[topic] = now
        if len(self._sent_at) > 10_000:
            self._sent_at = {topic: at for topic, at in self._sent_at.items() if now - at < QUIET_SECONDS}
        return due, min(free_at.values()) - now if free_at else None

    def _send(self, topics: list[str]) -> None:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(conninfo(), autocommit=True, options=WITHOUT_WAITING)
            self._connection.execute(
                "SELECT pg_notify(%s, topic) FROM unnest(%s::text[]) AS topic", [CHANNEL, topics]
            )
        except psycopg.Error as error:
            logger.warning("could not notify %d topics, listeners will poll: %s", len(topics), error)
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


publisher = Publisher()
