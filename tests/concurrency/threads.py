"""Threads that race: each with a database connection of its own, all let go at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

Answer = TypeVar("Answer")


def race(*calls: Callable[[], Answer]) -> list[Answer]:
    """Make all calls at once, and return their answers in order."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Answer]) -> Answer:
        connection.ensure_connection()
        barrier.wait(30)
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def outcomes(calls: Sequence[Callable[[], object]], *refusals: type[Exception]) -> list[bool]:
    """Race the calls, and return which ones succeeded; a refusal of these kinds is an answer."""

    def attempt_of(call: Callable[[], object]) -> Callable[[], bool]:
        def attempt() -> bool:
            try:
                call()
            except refusals:
                return False
            return True

        return attempt

    return race(*(attempt_of(call) for call in calls))
