"""Database work beside the event loop: a bounded pool of threads, and a clean connection each time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import close_old_connections

#: More threads than this only wait for each other: Python runs one at a time, PostgreSQL a few.
POOL = ThreadPoolExecutor(max_workers=8, thread_name_prefix="database")

Answer = TypeVar("Answer")


async def in_thread(work: Callable[..., Answer], /, *args: Any, **kwargs: Any) -> Answer:
    """Call `work` in a database thread. Threads share connections through the pool, never hold one."""

    def run() -> Answer:
        try:
            return work(*args, **kwargs)
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(POOL, run)


async def stream_texts(texts: Iterator[str]) -> AsyncIterator[str]:
    """Yield the parts of a long text for a streaming answer; a plain iterator would be read whole first."""
    while (text := await in_thread(next, texts, None)) is not None:
        yield text
