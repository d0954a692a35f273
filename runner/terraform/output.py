"""Terraform's `-json` output: the events of a command for the log, and its errors and counts."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from runner.protocol import LogLevel


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """An error or warning of Terraform's, with its place in the configuration."""

    severity: str
    summary: str
    detail: str
    address: str
    file: str
    line: int
    snippet: dict[str, Any] | None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.file else ""

    @property
    def sentence(self) -> str:
        """The summary and its place, on one line."""
        return f"{self.summary} at {self.place}" if self.place else self.summary

    @property
    def is_configuration_error(self) -> bool:
        """Return whether only an edit can help: it has a place in the text, and belongs to no resource."""
        return bool(self.file) and not self.address and not _TRANSIENT.search(self.summary)


#: Errors that point at the text of the configuration, but come from the network.
_TRANSIENT = re.compile(r"download|registry|remote module|timeout|connection", re.IGNORECASE)


class Event(NamedTuple):
    """One line for the log."""

    message: str
    level: LogLevel = LogLevel.INFO
    data: dict[str, Any] | None = None
    #: Whether the printed line has each of its texts, letter by letter: no secret there, none here.
    is_verbatim: bool = False
    #: The output of a provisioner: its resource, and the text at the end of the message.
    printed: tuple[str, str] | None = None


_LEVELS = {
    "trace": LogLevel.DEBUG, "debug": LogLevel.DEBUG, "info": LogLevel.INFO,
    "warn": LogLevel.WARN, "error": LogLevel.ERROR,
}  # fmt: skip

#: Terraform's message types about one resource, and what they mean here.
_RESOURCE_EVENTS = {
    "planned_change": "planned",
    "apply_start": "started", "refresh_start": "started", "ephemeral_op_start": "started",
    "apply_progress": "progress", "ephemeral_op_progress": "progress",
    "apply_complete": "done", "refresh_complete": "done", "ephemeral_op_complete": "done",
    "apply_errored": "failed", "ephemeral_op_errored": "failed",
}  # fmt: skip


class OutputReader:
    """Reads the output of one command, line by line, and collects its errors and summary."""

    def __init__(self) -> None:
        self.errors: list[Diagnostic] = []
        self.summary: dict[str, Any] = {}
        self._started: dict[str, Any] = {}  # by address, as Terraform wrote the time

    def read(self, line: str) -> Event:
        """Return the event of a line; a line that is no message of Terraform's is kept as it is."""
        message = _message(line)
        if message is None:
            return Event(line, is_verbatim=True)
        try:
            # An escape stands for another letter than the one that is printed.
            return self._event(message, is_verbatim="\\" not in line)
        except (AttributeError, TypeError, ValueError):
            return Event(message["@message"])  # A future Terraform says it in another shape.

    def _event(self, message: dict[str, Any], *, is_verbatim: bool) -> Event:
        kind = message.get("type", "")
        if kind == "diagnostic":
            return self._diagnostic(message)
        level = _LEVELS.get(message.get("@level", ""), LogLevel.INFO)
        printed = _provisioner_output(message.get("hook") or {}) if kind == "provision_progress" else None
        return Event(message["@message"], level, self._data(kind, message), is_verbatim, printed)

    def _data(self, kind: str, message: dict[str, Any]) -> dict[str, Any] | None:
        if kind in _RESOURCE_EVENTS:
            return self._resource(kind, message)
        if kind == "resource_drift":
            return {"kind": "drift", **_resource_facts(message.get("change", {}))}
        if kind == "change_summary":
            return self._summary(message.get("changes", {}))
        if kind == "outputs":
            return {"kind": "outputs", "outputs": dict(_outputs(message.get("outputs", {})))}
        return None

    def _resource(self, kind: str, message: dict[str, Any]) -> dict[str, Any]:
        body = message.get("change") or message.get("hook") or {}
        data = {"kind": "resource", "event": _RESOURCE_EVENTS[kind], **_resource_facts(body)}
        seconds = self._seconds(data["event"], data["address"], message, body)
        return data if seconds is None else data | {"seconds": seconds}

    def _seconds(
        self, event: str, address: str, message: dict[str, Any], body: dict[str, Any]
    ) -> float | None:
        """Return the duration by the messages' times: Terraform's own is in whole seconds."""
        if event == "started":
            self._started[address] = message.get("@timestamp")
        elif event in ("progress", "done", "failed"):
            at, started = _time(message.get("@timestamp")), _time(self._started.get(address))
            if at and started:
                return round((at - started).total_seconds(), 3)
        elapsed = body.get("elapsed_seconds")
        return float(elapsed) if isinstance(elapsed, int | float) else None

    def _summary(self, changes: dict[str, Any]) -> dict[str, Any]:
        counts = {key: int(changes.get(key, 0)) for key in ("add", "change", "remove", "import")}
        self.summary = {"kind": "summary", "operation": changes.get("operation", ""), **counts}
        return self.summary

    def _diagnostic(self, message: dict[str, Any]) -> Event:
        diagnostic = read_diagnostic(message.get("diagnostic", {}))
        is_error = diagnostic.severity == "error"
        if is_error:
            self.errors.append(diagnostic)
        return Event(_describe(diagnostic), LogLevel.ERROR if is_error else LogLevel.WARN, _card(diagnostic))


def _provisioner_output(hook: dict[str, Any]) -> tuple[str, str]:
    return str((hook.get("resource") or {}).get("addr", "")), str(hook.get("output", ""))


def read_diagnostic(raw: dict[str, Any]) -> Diagnostic:
    place = raw.get("range") or {}
    return Diagnostic(
        severity=str(raw.get("severity", "error")),
        summary=" ".join(str(raw.get("summary", "")).split()),
        detail=str(raw.get("detail", "")),
        address=str(raw.get("address", "")),
        file=str(place.get("filename", "")),
        line=int(place.get("start", {}).get("line", 0)),
        snippet=_snippet(raw.get("snippet")),
    )


def _describe(diagnostic: Diagnostic) -> str:
    """Return the diagnostic as one line of the log."""
    detail = " ".join(diagnostic.detail.split())
    head = f"{diagnostic.severity.capitalize()}: {diagnostic.sentence}"
    return f"{head}: {detail}" if detail else head


def _card(diagnostic: Diagnostic) -> dict[str, Any]:
    return {"kind": "diagnostic", **dataclasses.asdict(diagnostic)}


def _snippet(raw: dict[str, Any] | None) -> dict[str, Any] | None:
    if not raw:
        return None
    return {
        "context": raw.get("context"),
        "code": raw.get("code", ""),
        "start_line": raw.get("start_line", 0),
        "highlight_start": raw.get("highlight_start_offset", 0),
        "highlight_end": raw.get("highlight_end_offset", 0),
        "values": raw.get("values") or [],
    }


def _resource_facts(body: dict[str, Any]) -> dict[str, Any]:
    resource = body.get("resource") or {}
    action = body.get("action") or "read"
    if action == "noop" and body.get("importing"):
        action = "import"
    return {
        "address": resource.get("addr", ""),
        "module": resource.get("module", ""),
        "type": resource.get("resource_type", ""),
        "action": action,
    }


def _outputs(outputs: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, output in outputs.items():
        # A plan's outputs have an action and no value yet.
        facts = {key: output[key] for key in ("sensitive", "type", "value", "action") if key in output}
        if facts.get("sensitive"):
            facts.pop("value", None)
        yield name, facts


def _message(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        message, end = _decode(line)
    except (ValueError, RecursionError):
        return None
    if line[end:].strip():
        return None
    return message if isinstance(message, dict) and isinstance(message.get("@message"), str) else None


#: Without what `json.loads` does around it, which takes as long as the decoding of a line.
_decode = json.JSONDecoder().raw_decode


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
