"""The job page's socket: the log from the reader's cursor on, and a message when the job changes."""

import asyncio
import json
from collections import deque
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from console.inputs import whole_number
from console.jobs.access import job_to_view_by_id
from console.jobs.job_header import job_headers
from console.jobs.log.ring import ring
from console.jobs.log.selectors import Chunk
from console.live import topics
from console.live.consumers import POLL_SECONDS, RECHECK_SECONDS, LiveConsumer
from console.live.listener import listener
from console.live.threads import in_thread

#: How much may be sent to a reader before it acknowledges; the server's `send` itself never waits.
WINDOW_BYTES = 1024 * 1024


class JobConsumer(LiveConsumer):
    """One reader of one job. Its cursor is the number of the last line it was sent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cursor = 0
        self._in_flight: deque[tuple[int, int]] = deque()
        self._acknowledged = asyncio.Event()
        self._lease: tuple[str, str] | None = None
        self._woken_at = 0.0
        self._is_current = False

    def authorize(self) -> None:
        self.job_id: UUID = self.scope["url_route"]["kwargs"]["job_id"]
        job_to_view_by_id(self.user, self.job_id)

    async def stream(self) -> None:
        self.cursor = self._first_cursor()
        version: tuple[Any, ...] = ()
        loop = asyncio.get_running_loop()
        checked_at = self._woken_at = loop.time()
        async with listener().subscribe([topics.job(self.job_id)]) as subscription:
            while True:
                version = await self._catch_up(version)
                await subscription.wait(seconds=POLL_SECONDS)
                self._woken_at = subscription.woken_at
                if loop.time() - checked_at > RECHECK_SECONDS:
                    await in_thread(self.authorize_again)
                    checked_at = loop.time()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        match _decode(text_data):
            case {"type": "ack", "seq": int(seq)}:
                self._acknowledge(seq)
            case {"type": "ping"}:
                await self.send(text_data='{"type":"pong"}')

    async def _catch_up(self, version: tuple[Any, ...]) -> tuple[Any, ...]:
        """Send the news: the log first, so that a status never comes before the lines that led to it."""
        header = await job_headers.read(self.job_id, woken_at=self._woken_at)
        await self._send_log(as_of=header.read_at)
        if header.version != version:
            await self._send({"type": "job", "status": header.status})
        if header.lease is not None and header.lease != self._lease:
            self._lease = heartbeat_at, expires_at = header.lease
            await self._send({"type": "lease", "heartbeat_at": heartbeat_at, "expires_at": expires_at})
        if not self._is_current or header.version != version:
            self._is_current = True
            await self._send({"type": "current", "last_seq": self.cursor})
        return header.version

    async def _send_log(self, *, as_of: float) -> None:
        while chunks := await ring.read(self.job_id, after=self.cursor, woken_at=max(self._woken_at, as_of)):
            for chunk in chunks:
                await self._send_chunk(chunk)

    async def _send_chunk(self, chunk: Chunk) -> None:
        frame = chunk.frame
        while self._bytes_in_flight() > WINDOW_BYTES:
            self._acknowledged.clear()
            await self._acknowledged.wait()
        self.cursor = chunk.next_seq - 1
        self._in_flight.append((self.cursor, len(frame)))
        await self.send(text_data=frame)

    def _acknowledge(self, seq: int) -> None:
        while self._in_flight and self._in_flight[0][0] <= seq:
            self._in_flight.popleft()
        self._acknowledged.set()

    def _bytes_in_flight(self) -> int:
        return sum(size for _, size in self._in_flight)

    def _first_cursor(self) -> int:
        after = parse_qs(self.scope["query_string"].decode("latin-1")).get("after", ["0"])[0]
        return whole_number(after, digits=18) or 0

    async def _send(self, frame: dict[str, Any]) -> None:
        await self.send(text_data=json.dumps(frame, separators=(",", ":")))


def _decode(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError:
        return None
