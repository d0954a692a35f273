"""The requests to stop an attempt: their reasons and their urgency."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from enum import StrEnum
from typing import TypeVar

from runner import clock

#: A runner that is told to stop has this long for Terraform: with the report it stays under 15 s,
#: which is less than what Kubernetes (30 s) and systemd (90 s) allow.
RUNNER_STOP_SECONDS = 10.0
#: Another attempt may be running already: only as long as Terraform needs to let go.
STALE_CLAIM_SECONDS = 5.0
#: After a stop of the runner, how long an unreachable console is still tried with the report.
LAST_REPORT_SECONDS = 13.0


Result = TypeVar("Result")


class StopReason(StrEnum):
    """The reason of a stop, which is also the error code of the final report."""

    CANCELLED = "cancelled"
    TIMEOUT_EXCEEDED = "timeout_exceeded"
    RUNNER_STOPPED = "runner_stopped"
    LEASE_LOST = "lease_lost"


class Stopped(Exception):
    """The attempt was told to stop."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Lease:
    """The claim on the job, as a duration since the runner's own request.

    With L = 120 s: an attempt that cannot be renewed is interrupted after 103 s and killed after 118 s, two
    seconds before another runner may start.
    """

    def __init__(self, *, sent_at: float, lease_seconds: float) -> None:
        self.renew(sent_at=sent_at, lease_seconds=lease_seconds)

    def renew(self, *, sent_at: float, lease_seconds: float) -> None:
        margin = min(2.0, lease_seconds / 20)
        self.expires_at = sent_at + lease_seconds
        self.kill_at = self.expires_at - margin
        self.interrupt_at = self.kill_at - min(15.0, lease_seconds / 3)
        # The runner acts first, because it can also report; the watchdog acts if it does not.
        self.watchdog_interrupt_at = self.interrupt_at + margin


@dataclasses.dataclass(frozen=True, slots=True)
class _Request:
    reason: StopReason
    at: float
    kill_at: float


class Stop:
    """Collects requests to stop; everything that waits checks it. Safe from any thread."""

    def __init__(self, *, lease: Lease, timeout_seconds: float, grace_seconds: float) -> None:
        self._lease = lease
        self._deadline = clock.now() + timeout_seconds
        self._grace_seconds = grace_seconds
        self._lock = threading.Lock()
        self._request: _Request | None = None
        self._shield_ends_at: float | None = None
        self._give_up_at = float("inf")

    def cancel(self) -> None:
        self._request_stop(StopReason.CANCELLED, self._grace_seconds)

    def time_out(self) -> None:
        self._request_stop(StopReason.TIMEOUT_EXCEEDED, self._grace_seconds)

    def stop_runner(self) -> None:
        self._request_stop(StopReason.RUNNER_STOPPED, RUNNER_STOP_SECONDS)
        self._give_up_at = min(self._give_up_at, clock.now() + LAST_REPORT_SECONDS)

    def kill(self) -> None:
        """Stop at once, after a second signal."""
        self._request_stop(StopReason.RUNNER_STOPPED, 0.0)
        with self._lock:
            assert self._request is not None
            self._request = dataclasses.replace(self._request, kill_at=clock.now())
            self._shield_ends_at = None
        self._give_up_at = clock.now() + 2

    def lose_claim(self) -> None:
        self._request_stop(StopReason.LEASE_LOST, min(STALE_CLAIM_SECONDS, self._lease.kill_at - clock.now()))
        # Nothing is accepted any more: a console that fails on this attempt's log must not hold its slot.
        self._give_up_at = min(self._give_up_at, clock.now() + STALE_CLAIM_SECONDS)

    @property
    def reason(self) -> StopReason | None:
        return request.reason if (request := self._current()) else None

    @property
    def kill_at(self) -> float:
        """The time at which a running process is killed. Meaningful once there is a reason."""
        request = self._current()
        return request.kill_at if request else float("inf")

    @property
    def interrupt_again_at(self) -> float:
        """The time of the second SIGINT, at which Terraform stops waiting: late, but before the kill."""
        request = self._current()
        if request is None:
            return float("inf")
        return request.kill_at - min(3.0, (request.kill_at - request.at) / 4)

    def requested(self) -> bool:
        return self.reason is not None

    def has_given_up(self) -> bool:
        """Return whether even the last report is no longer worth waiting for."""
        return clock.now() >= self._give_up_at

    def check(self) -> None:
        if reason := self.reason:
            raise Stopped(reason)

    def shield(self, seconds: float) -> None:
        """Let only a lost lease or a kill stop the short work that must follow an apply."""
        self._shield_ends_at = clock.now() + seconds

    def unshield(self) -> None:
        self._shield_ends_at = None

    def wait(self, seconds: float) -> None:
        """Wait for a while, unless there is a reason to stop."""
        end = clock.now() + seconds
        while (remaining := end - clock.now()) > 0:
            self.check()
            time.sleep(min(remaining, 0.1))

    def unless_stopped(self, work: Callable[[], Result]) -> Result:
        """Run work that cannot be interrupted, such as waiting for a server; a stop abandons it."""
        return self.all_unless_stopped([work], at_once=1)[0]

    def all_unless_stopped(self, works: Iterable[Callable[[], Result]], *, at_once: int) -> list[Result]:
        """Do the same for several, some at the same time; returns their results in order."""
        waiting = deque((work, Future[Result]()) for work in works)
        results = [result for _, result in waiting]

        def run() -> None:
            with contextlib.suppress(IndexError):
                while not self.requested():
                    _settle(*waiting.popleft())

        # Not a pool of `concurrent.futures`, whose threads have to end before the runner can.
        for _ in range(min(at_once, len(waiting))):
            threading.Thread(target=run, name="unless-stopped", daemon=True).start()
        while wait(results, timeout=0.1).not_done:
            self.check()
        return [result.result() for result in results]

    def _current(self) -> _Request | None:
        moment = clock.now()
        if moment >= self._lease.interrupt_at:
            self._request_stop(StopReason.LEASE_LOST, self._lease.kill_at - moment)
        elif moment >= self._deadline:
            self.time_out()
        with self._lock:
            request, shield_ends_at = self._request, self._shield_ends_at
        if request and request.reason != StopReason.LEASE_LOST and shield_ends_at:
            return None if moment < shield_ends_at else request
        return request

    def _request_stop(self, reason: StopReason, grace_seconds: float) -> None:
        """Keep the first reason, except that a lost lease replaces any other: it is a fence."""
        moment = clock.now()
        with self._lock:
            request = self._request
            if request is None or (reason == StopReason.LEASE_LOST and request.reason != reason):
                self._request = _Request(reason, moment, moment + max(0.0, grace_seconds))
            elif reason == StopReason.RUNNER_STOPPED:
                # A cancel may wait for a minute; a runner that stops may not.
                kill_at = min(request.kill_at, moment + grace_seconds)
                self._request = dataclasses.replace(request, kill_at=kill_at)


def _settle(work: Callable[[], Result], result: Future[Result]) -> None:
    try:
        result.set_result(work())
    except BaseException as error:
        result.set_exception(error)
