"""The last step of a blueprint: a part of an apply that is a phase of its own in the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runner import clock
from runner.protocol import LogLevel
from runner.terraform.output import Event

#: What makes something of a resource: taking it away is no step of a blueprint.
_MAKING = ("create", "update", "replace")
_ENDS = ("done", "failed")


class LastStep:
    """Writes the phase around the events of the resources that it is made of.

    Terraform first tells what is planned; the phase begins once, with the first of them, and ends once: with
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
        """The event, and before or after it the line that begins or ends the phase."""
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
            self._note_end(data)
            if not self._at_work and not self._to_come:
                yield from self.close()

    def close(self) -> Iterator[Event]:
        """The phase's end, where it has begun and has not ended yet."""
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

    def _note_end(self, data: dict[str, Any]) -> None:
        self._at_work.discard(data["address"])
        self._failed = self._failed or data["event"] == "failed"
        self._last_end = clock.now()

    def _is_part(self, data: dict[str, Any]) -> bool:
        """Whether an event is about one of the addresses, any of its instances, or something inside it."""
        if data.get("kind") != "resource" or data.get("action") not in _MAKING:
            return False
        address = str(data["address"])
        return any(address == one or address.startswith((f"{one}[", f"{one}.")) for one in self._addresses)


def last_step_of(snapshot: dict[str, Any]) -> LastStep | None:
    """The last step that the snapshot's blueprint names, if it names one."""
    said = (snapshot.get("source") or {}).get("last_step")
    if not isinstance(said, dict):
        return None
    return LastStep(
        phase=str(said["phase"]), title=str(said["title"]), addresses=[str(one) for one in said["addresses"]]
    )
