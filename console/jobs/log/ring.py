"""The newest log lines of watched jobs, once per process: fifty viewers cost one read.

The database is the truth; the ring only saves reading the same chunk for each socket.
"""

import asyncio
from collections import OrderedDict
from uuid import UUID

from console.jobs.log.selectors import Chunk, log_chunks
from console.live.threads import in_thread

MAX_BYTES = 64 * 1024 * 1024
#: A reader further back than the ring reads the database directly, this many batches at a time.
READ_CHUNKS = 10


class _Tail:
    """The contiguous end of one job's log."""

    def __init__(self, after: int) -> None:
        self.first_seq = self.next_seq = after + 1
        self.chunks: list[Chunk] = []
        self.bytes = 0
        self.reading = asyncio.Lock()
        #: When the last read that reached the end of the log began.
        self.read_began_at = 0.0

    def append(self, chunks: list[Chunk]) -> int:
        size = sum(len(line) for chunk in chunks for line in chunk.lines)
        self.chunks += chunks
        self.bytes += size
        self.next_seq = chunks[-1].next_seq
        return size

    def after(self, seq: int) -> list[Chunk]:
        chunks = [chunk.after(seq) for chunk in self.chunks if chunk.next_seq > seq + 1]
        return chunks[:READ_CHUNKS]


class LogRing:
    def __init__(self) -> None:
        self._tails: OrderedDict[UUID, _Tail] = OrderedDict()
        self._bytes = 0

    async def read(self, job_id: UUID, *, after: int, woken_at: float) -> list[Chunk]:
        """Return chunks after line `after`; none when a read since `woken_at` has found nothing new."""
        tail = self._tails.get(job_id)
        if tail is None or after + 1 < tail.first_seq:
            chunks = await in_thread(log_chunks, job_id, after=after, limit=READ_CHUNKS)
            if tail is None and len(chunks) < READ_CHUNKS:
                self._begin(job_id, chunks, after)
            return chunks
        if after + 1 < tail.next_seq:
            return tail.after(after)
        async with tail.reading:
            if after + 1 >= tail.next_seq and tail.read_began_at < woken_at:
                await self._extend(job_id, tail)
        return tail.after(after)

    def forget(self, job_id: UUID) -> None:
        tail = self._tails.pop(job_id, None)
        if tail is not None:
            self._bytes -= tail.bytes

    def _begin(self, job_id: UUID, chunks: list[Chunk], after: int) -> None:
        """Follow the log from its end, which a reader has reached."""
        self._tails[job_id] = _Tail(chunks[-1].next_seq - 1 if chunks else after)

    async def _extend(self, job_id: UUID, tail: _Tail) -> None:
        began_at = asyncio.get_running_loop().time()
        chunks = await in_thread(log_chunks, job_id, after=tail.next_seq - 1, limit=READ_CHUNKS)
        if len(chunks) < READ_CHUNKS:
            tail.read_began_at = began_at
        if chunks:
            self._bytes += tail.append(chunks)
            self._tails.move_to_end(job_id)
            self._shrink()

    def _shrink(self) -> None:
        while self._bytes > MAX_BYTES and len(self._tails) > 1:
            self.forget(next(iter(self._tails)))
        newest = next(reversed(self._tails.values()))
        while self._bytes > MAX_BYTES and len(newest.chunks) > 1:
            dropped = newest.chunks.pop(0)
            size = sum(len(line) for line in dropped.lines)
            newest.first_seq, newest.bytes = dropped.next_seq, newest.bytes - size
            self._bytes -= size


ring = LogRing()
