"""Recognizes the runner behind a request, with one statement fewer for one that was seen a moment ago.

Verifying a credential is a statement of its own, so for some seconds a process remembers whose it is. Nobody
relies on that alone: the request's own statement then carries the credential's digest and does nothing
unless the credential still stands (`VERIFIED` in `console/jobs/queue.py`), so a revoked runner is refused at
once.

A statement that did nothing does not say why. The work then raises `CredentialUnverified`, and `as_runner`
does it again with a runner that was looked up in the database: only then is it known what to answer. The same
happens to work that takes several statements, since only the first would verify. See decision 11.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from console.accounts.tokens import digest
from console.runners.services import KnownRunner, recognize

#: Looking a runner up also notes that it is alive, so it must not be put off for long.
REMEMBERED_SECONDS = 5.0
MOST_REMEMBERED = 10_000

Answer = TypeVar("Answer")

_remembered: dict[str, tuple[KnownRunner, float]] = {}


class CredentialUnverified(Exception):
    """A remembered runner's request needs its credential verified before it can go on."""


def as_runner(credential: str, work: Callable[[KnownRunner], Answer]) -> Answer:
    """Do the work as the runner that the credential belongs to; again, when it needs the credential verified.

    The work must not have changed anything when it raises `CredentialUnverified`.
    """
    runner = recall_runner(credential)
    if runner is not None:
        try:
            return work(runner)
        except CredentialUnverified:
            pass
    return work(verify_runner(credential))


def recall_runner(credential: str) -> KnownRunner | None:
    """Return the runner as it was seen a moment ago, with the credential that is still to be verified."""
    remembered = _remembered.get(digest(credential))
    return remembered[0] if remembered is not None and remembered[1] > time.monotonic() else None


def verify_runner(credential: str) -> KnownRunner:
    """Return the runner as the database knows it now, and remember it."""
    sha256 = digest(credential)
    _remembered.pop(sha256, None)
    runner = recognize(credential)
    if len(_remembered) >= MOST_REMEMBERED:
        _remembered.clear()
    _remembered[sha256] = replace(runner, credential=sha256), time.monotonic() + REMEMBERED_SECONDS
    return runner


def require_verified(credential: str | None) -> None:
    """Raise `CredentialUnverified` unless the credential was verified before this request's statements."""
    if credential is not None:
        raise CredentialUnverified
