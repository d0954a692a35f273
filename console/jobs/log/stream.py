"""A job's log as one stream: the stored lines, then the new ones, until the job is final."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import orjson
from django.http import StreamingHttpResponse

from console.jobs.lifecycle import is_final
from console.jobs.log.ring import ring
from console.jobs.models import Job
from console.live import topics
from console.live.consumers import POLL_SECONDS
from console.live.listener import listener
from console.live.threads import in_thread, stream_texts


async def stream_log(job_id: UUID, *, after: int = 0) -> AsyncIterator[dict[str, Any]]:
    """Yield numbered lines as they come; the last frame is the final status."""
    async with listener().subscribe([topics.job(job_id)]) as subscription:
        while True:
            # The status is read before the lines: when it is final, no line can follow the ones read next.
            status = await in_thread(_status, job_id)
            woken_at = asyncio.get_running_loop().time()
            while chunks := await ring.read(job_id, after=after, woken_at=woken_at):
                for chunk in chunks:
                    for index, line in enumerate(chunk.lines):
                        yield {"seq": chunk.first_seq + index, **orjson.loads(line)}
                    after = chunk.next_seq - 1
            if is_final(status):
                yield {"status": status}
                return
            await subscription.wait(seconds=POLL_SECONDS)


def plain_text(texts: Iterator[str]) -> StreamingHttpResponse:
    """Answer with a long text, a part at a time."""
    return StreamingHttpResponse(stream_texts(texts), content_type="text/plain; charset=utf-8")


def _status(job_id: UUID) -> str:
    return Job.objects.values_list("status", flat=True).get(pk=job_id)
