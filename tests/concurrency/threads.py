"""Threads that race: each with a database connection of its own, all let go at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

Answer = TypeVar("Answer")


def race(*deeds: Callable[[], Answer]) -> list[Answer]:
    """Do all of it at once; the answers in the order of the deeds."""
    barrier = threading.Barrier(len(deeds))

    def run(deed: Callable[[], Answer]) -> Answer:
        connection.ensure_connection()
        barrier.wait(30)
        try:
            return deed()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(deeds)) as pool:
        return list(pool.map(run, deeds))


def outcomes(deeds: Sequence[Callable[[], object]], *refusals: type[Exception]) -> list[bool]:
    """Whether each of the racing deeds was done; a refusal of these kinds is an answer."""

    def tried(deed: Callable[[], object]) -> Callable[[], bool]:
        def attempt() -> bool:
            try:
                deed()
            except refusals:
                return False
            return True

        return attempt

    return race(*(tried(deed) for deed in deeds))
