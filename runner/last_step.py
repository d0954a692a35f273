"""The last step of a blueprint: the part of an apply that the log shows as a phase of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runner import clock
from runner.protocol import LogLevel
from runner.terraform.output import Event

#: The actions that belong to a step of a blueprint: deleting a resource does not.
_MAKING = ("create", "update", "replace")
_ENDS = ("done", "failed")


class LastStep:
    """Adds the phase around the events of its resources.

    Terraform first lists the plan; the phase begins once, with the first of them, and ends once: with
    the last that is planned, or with the apply when something before it failed.
    """

    def __init__(self, *, phase: str, title: str, addresses: list[str]) -> None:
        self._phase = phase
        self._title = title
        self._addresses = tuple(addresses)
        self._to_come: set[str] = set()
        self._at_work: set[str] = set()
        self._began: float | None = None
        self._last_end = 0.0
        self._ended = False
        self._failed = False

    def around(self, event: Event) -> Iterator[Event]:
        """Return the event, with the line that begins or ends the phase before or after it."""
        data = event.data or {}
        if self._ended or not self._is_part(data):
            yield event
            return
        if data["event"] == "planned":
            self._to_come.add(data["address"])
        elif data["event"] == "started":
            yield from self._begin(data["address"])
        yield event
        if data["event"] in _ENDS and self._began is not None:
            self._record_end(data)
            if not self._at_work and not self._to_come:
                yield from self.close()

    def close(self) -> Iterator[Event]:
        """End the phase, if it has begun and not ended yet."""
        if self._began is None or self._ended:
            return
        self._ended = True
        unfinished = bool(self._at_work)
        seconds = round((clock.now() if unfinished else self._last_end) - self._began, 3)
        data = {"kind": "phase", "phase": self._phase, "event": "end", "seconds": seconds}
        if self._failed or unfinished:
            data["failed"] = True
        yield Event(f"{self._phase}: {seconds:.1f} s", LogLevel.DEBUG, data)

    def _begin(self, address: str) -> Iterator[Event]:
        if self._began is None:
            self._began = clock.now()
            yield Event(self._title, data={"kind": "phase", "phase": self._phase, "event": "start"})
        self._at_work.add(address)
        self._to_come.discard(address)

    def _record_end(self, data: dict[str, Any]) -> None:
        self._at_work.discard(data["address"])
        self._failed = self._failed or data["event"] == "failed"
        self._last_end = clock.now()

    def _is_part(self, data: dict[str, Any]) -> bool:
        """Return whether an event is about one of the addresses, an instance of it, or a resource inside."""
        if data.get("kind") != "resource" or data.get("action") not in _MAKING:
            return False
        address = str(data["address"])
        return any(address == own or address.startswith((f"{own}[", f"{own}.")) for own in self._addresses)


def last_step_of(snapshot: dict[str, Any]) -> LastStep | None:
    """Return the last step that the snapshot's blueprint names, if any."""
    step = (snapshot.get("source") or {}).get("last_step")
    if not isinstance(step, dict):
        return None
    return LastStep(
        phase=str(step["phase"]),
        title=str(step["title"]),
        addresses=[str(address) for address in step["addresses"]],
    )
