"""procrastinate, the nearest peer: a queue in Python on PostgreSQL. Its own worker, one job at a time."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import time
from types import TracebackType
from typing import Any, Self

from bench.site import Site

DATABASE = "procrastinate"


def peer_is_installed() -> bool:
    return importlib.util.find_spec("procrastinate") is not None


class Peer:
    """A database of its own on the same server, and a worker that is run for one round at a time."""

    def __init__(self, site: Site) -> None:
        procrastinate = importlib.import_module("procrastinate")
        site.postgres.ensure_database(DATABASE)
        connector = procrastinate.PsycopgConnector(conninfo=site.postgres.url(DATABASE))
        self._app = procrastinate.App(connector=connector)
        self._finished: list[float] = []
        self._no_op: Any = self._app.task(name="no_op")(self._note)
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        self._run(self._app.open_async())
        self._run(self._app.schema_manager.apply_schema_async())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._app.close_async())
        self._loop.close()

    def no_ops_per_second(self, count: int) -> float:
        """Between the first job and the last, so that the worker's own start and stop do not count."""
        self._finished.clear()
        self._run(self._work_off(count))
        assert len(self._finished) == count, "procrastinate did not run every job"
        return (count - 1) / (self._finished[-1] - self._finished[0])

    async def _work_off(self, count: int) -> None:
        for _ in range(count):
            await self._no_op.defer_async()
        await self._app.run_worker_async(wait=False, concurrency=1, install_signal_handlers=False)

    async def _note(self) -> None:
        self._finished.append(time.perf_counter())

    def _run(self, work: Any) -> None:
        self._loop.run_until_complete(work)
