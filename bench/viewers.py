"""Viewers of a job without a browser: sockets in a process of their own, which acknowledge what they get.

Nothing here may import Django: the process is spawned.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

import orjson
from websockets.asyncio.client import connect

from bench.wire_client import Console

WRITTEN = re.compile(r"^written at (\d+), line (\d+):")
#: Everybody's delays would be millions of numbers; every so many lines are enough for a percentile.
SAMPLE = 20
PATIENCE_SECONDS = 240


def watch(line: Connection, console: Console, credentials: list[str]) -> None:
    """First question: what to watch; the answer comes when all are connected. The second: what they saw."""
    (cookie,) = credentials
    order = line.recv()
    connected, result = threading.Event(), []
    thread = threading.Thread(
        target=lambda: result.extend(asyncio.run(_watch_all(console, cookie, order, connected)))
    )
    thread.start()
    connected.wait(PATIENCE_SECONDS)
    line.send("connected")
    line.recv()
    thread.join(PATIENCE_SECONDS)
    line.send(result)


async def _watch_all(
    console: Console, cookie: str, order: dict[str, Any], connected: threading.Event
) -> list[dict[str, Any]]:
    url = f"ws://{console.host}:{console.port}/ws/jobs/{order['job']}"
    ready = asyncio.Semaphore(0)
    viewers = [
        asyncio.create_task(_watch_one(url, cookie, order["lines"], ready)) for _ in range(order["viewers"])
    ]
    for _ in viewers:
        await ready.acquire()
    connected.set()
    return await asyncio.wait_for(asyncio.gather(*viewers), PATIENCE_SECONDS)


async def _watch_one(url: str, cookie: str, lines: int, ready: asyncio.Semaphore) -> dict[str, Any]:
    delays: list[float] = []
    received, doubled, last = 0, 0, 0
    headers = {"Cookie": cookie, "Origin": url.replace("ws://", "http://").split("/ws/")[0]}
    async with connect(url, additional_headers=headers, max_size=None, compression=None) as socket:
        ready.release()
        while received < lines:
            text = str(await socket.recv())
            if not text.startswith('{"type":"log"'):
                continue
            now = time.time() * 1_000
            frame = orjson.loads(text)
            lines_here = frame["lines"]
            numbered = [line["message"] for line in lines_here if line["message"].startswith("written at ")]
            if numbered:
                received, doubled, last = _count(numbered, received, doubled, last)
                delays += [now - int(WRITTEN.match(line)[1]) for line in numbered[::SAMPLE]]
            await socket.send(f'{{"type":"ack","seq":{frame["first_seq"] + len(lines_here) - 1}}}')
    return {"lines": received - doubled, "doubled": doubled, "delays": delays}


def _count(numbered: list[str], received: int, doubled: int, last: int) -> tuple[int, int, int]:
    """The first and the last line tell: a stretch has no holes, so what comes before its end came twice."""
    first, end = (int(WRITTEN.match(line)[2]) for line in (numbered[0], numbered[-1]))
    return received + len(numbered), doubled + max(0, last - first + 1), max(last, end)
