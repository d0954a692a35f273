"""Renews credentials: a thread per attempt replaces tokens and keys when half of their time is over."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable

from runner import clock
from runner.client import StaleClaim

logger = logging.getLogger(__name__)

#: After a renewal that failed, or a tenth of the lifetime if that is less. Half of the lifetime remains then:
#: minutes, with the console's 15-minute tokens.
_RETRY_SECONDS = 5.0

#: Gets a new one, puts it where Terraform looks, and returns its lifetime in seconds.
Renew = Callable[[], float]


@dataclasses.dataclass(slots=True)
class _Renewal:
    name: str
    renew: Renew
    seconds: float
    due_at: float
    is_failing: bool = False


class Renewer:
    """Safe to end at any time; a renewal that is under way is waited for."""

    def __init__(
        self, *, longest_seconds: float, warn: Callable[[str], None], on_renewal: Callable[[str], None]
    ) -> None:
        self._longest_seconds = longest_seconds
        self._warn = warn
        self._on_renewal = on_renewal
        self._renewals: list[_Renewal] = []
        self._changed = threading.Condition()
        self._has_ended = False
        self._thread = threading.Thread(target=self._renew_in_turn, name="credentials", daemon=True)

    def add(self, name: str, renew: Renew, *, seconds: float) -> None:
        """Renew this from now on; the present one is valid for some seconds."""
        with self._changed:
            self._renewals.append(_Renewal(name, renew, seconds, self._due_at(seconds)))
            if not self._thread.is_alive() and not self._has_ended:
                self._thread.start()
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
        if self._thread.is_alive():
            # A console that hangs must not hold up the end of the attempt, which removes the files anyway.
            self._thread.join(timeout=3)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _due_at(self, seconds: float) -> float:
        return clock.now() + min(seconds / 2, self._longest_seconds)

    def _renew_in_turn(self) -> None:
        while renewal := self._next_due():
            try:
                self._renew(renewal)
            except StaleClaim:
                return  # The heartbeat hears the same, and ends the attempt.

    def _next_due(self) -> _Renewal | None:
        with self._changed:
            while not self._has_ended:
                renewal = min(self._renewals, key=lambda renewal: renewal.due_at)
                if (seconds := renewal.due_at - clock.now()) <= 0:
                    return renewal
                self._changed.wait(seconds)
        return None

    def _renew(self, renewal: _Renewal) -> None:
        try:
            seconds = renewal.renew()
        except StaleClaim:
            raise
        except Exception as error:
            # Any error: Terraform's present credentials are valid for a while, and the next try may work.
            if not renewal.is_failing:
                self._warn(f"{renewal.name} could not be renewed, trying again: {error}")
            renewal.is_failing = True
            renewal.due_at = clock.now() + min(_RETRY_SECONDS, renewal.seconds / 10)
        else:
            if renewal.is_failing:
                self._warn(f"{renewal.name} is renewed after all")
            renewal.is_failing = False
            renewal.seconds = seconds
            renewal.due_at = self._due_at(seconds)
            self._on_renewal(renewal.name)
