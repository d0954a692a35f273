"""Renews what runs out: a thread per attempt replaces tokens and keys when half of their time is over."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable

from runner import clock
from runner.client import StaleClaim

logger = logging.getLogger(__name__)

#: After a renewal that failed, or a tenth of a life if that is less. Half of a life is left then: minutes,
#: with the console's 15-minute tokens.
_RETRY_SECONDS = 5.0

#: Gets a new one, puts it where Terraform looks, and says for how many seconds it is good.
Renew = Callable[[], float]


@dataclasses.dataclass(slots=True)
class _Kept:
    what: str
    renew: Renew
    seconds: float
    due_at: float
    is_failing: bool = False


class Keeper:
    """Safe to end at any time; a renewal that is under way is waited for."""

    def __init__(
        self, *, longest_seconds: float, warn: Callable[[str], None], on_renewal: Callable[[str], None]
    ) -> None:
        self._longest_seconds = longest_seconds
        self._warn = warn
        self._on_renewal = on_renewal
        self._kept: list[_Kept] = []
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._keep_on, name="credentials", daemon=True)

    def keep(self, what: str, renew: Renew, *, seconds: float) -> None:
        """Renew this from now on; what there is at present is good for some seconds."""
        with self._changed:
            self._kept.append(_Kept(what, renew, seconds, self._due_at(seconds)))
            if not self._thread.is_alive() and not self._ended:
                self._thread.start()
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._thread.is_alive():
            # A console that hangs must not hold up the end of the attempt; its files go, whoever writes them.
            self._thread.join(timeout=3)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _due_at(self, seconds: float) -> float:
        return clock.now() + min(seconds / 2, self._longest_seconds)

    def _keep_on(self) -> None:
        while kept := self._next_due():
            try:
                self._renew(kept)
            except StaleClaim:
                return  # The heartbeat hears the same, and ends the attempt.

    def _next_due(self) -> _Kept | None:
        with self._changed:
            while not self._ended:
                kept = min(self._kept, key=lambda one: one.due_at)
                if (left := kept.due_at - clock.now()) <= 0:
                    return kept
                self._changed.wait(left)
        return None

    def _renew(self, kept: _Kept) -> None:
        try:
            seconds = kept.renew()
        except StaleClaim:
            raise
        except Exception as error:
            # Whatever it is: what Terraform has is still good for a while, and the next try may work.
            if not kept.is_failing:
                self._warn(f"{kept.what} could not be renewed, trying again: {error}")
            kept.is_failing = True
            kept.due_at = clock.now() + min(_RETRY_SECONDS, kept.seconds / 10)
        else:
            if kept.is_failing:
                self._warn(f"{kept.what} is renewed after all")
            kept.is_failing = False
            kept.seconds = seconds
            kept.due_at = self._due_at(seconds)
            self._on_renewal(kept.what)
