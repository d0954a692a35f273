"""Who sent a request. A runner that was recognized a moment ago is not looked up again before its deed.

Its credential is then looked at by the statement of the deed itself, so that a revoked one is refused at
once all the same. Whatever that statement does not do, for this or for any other reason, is tried again after
a look of its own: only then is it known what to answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from console.accounts.tokens import digest
from console.runners.services import KnownRunner, recognize

#: A look also notes that the runner is alive, so it must not be put off for long.
REMEMBERED_SECONDS = 5.0
MOST_REMEMBERED = 10_000

Answer = TypeVar("Answer")

_remembered: dict[str, tuple[KnownRunner, float]] = {}


class LookAgain(Exception):
    """The deed of a remembered runner was not done by its first statement."""


def as_runner(credential: str, deed: Callable[[KnownRunner], Answer]) -> Answer:
    """Do this as the runner that the credential belongs to."""
    runner = remembered(credential)
    if runner is not None:
        try:
            return deed(runner)
        except LookAgain:
            pass
    return deed(recognized(credential))


def remembered(credential: str) -> KnownRunner | None:
    """The runner as it was seen lately; it says itself that its credential is still to be looked at."""
    found = _remembered.get(digest(credential))
    return found[0] if found is not None and found[1] > time.monotonic() else None


def recognized(credential: str) -> KnownRunner:
    """The runner as the database knows it now."""
    shown = digest(credential)
    _remembered.pop(shown, None)
    runner = recognize(credential)
    if len(_remembered) >= MOST_REMEMBERED:
        _remembered.clear()
    _remembered[shown] = replace(runner, credential=shown), time.monotonic() + REMEMBERED_SECONDS
    return runner


def require_verified(credential: str | None) -> None:
    """Raise `LookAgain` unless the credential was verified before this request's statements.

    One statement verifies the credential itself; work that takes several needs it verified first.
    """
    if credential is not None:
        raise LookAgain
