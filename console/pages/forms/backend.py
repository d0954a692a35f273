"""The form by which a backend is chosen: what it shows, and what a filled one means."""

from typing import Any

from django.http import QueryDict

from console.errors import BadInput
from console.state.backends import RULES, environment_of
from console.state.models import Backend, BackendKind

TRUE, FALSE = "true", "false"


def backend_form(backend: Backend | None, *, has_state: bool) -> dict[str, Any]:
    """The choices, the settings of each, and the names of what is sealed. Never a sealed value."""
    return {
        "kinds": BackendKind.choices,
        "chosen": backend.kind if backend else BackendKind.CONSOLE.value,
        "settings_text": "\n".join(_lines(backend.settings)) if backend else "",
        "sealed_names": sorted(environment_of(backend)) if backend else [],
        "has_state": has_state,
        "known": [
            (kind.label, _setting_names(kind), _readable(RULES[kind].environment.pattern)) for kind in RULES
        ],
    }


def chosen_backend(form: QueryDict) -> dict[str, Any]:
    """The arguments of `choose_backend` that a filled form stands for."""
    environment = _pairs(form.get("environment", ""))
    return {
        "kind": form.get("kind", ""),
        "settings": {name: _value(text) for name, text in _pairs(form.get("settings", "")).items()},
        # Left empty, what is sealed stays.
        "environment": environment or ({} if form.get("forget") == "1" else None),
        "state_was_moved": form.get("moved") == "1",
    }


def _readable(pattern: str) -> str:
    """The names that a pattern stands for, as people write them."""
    return pattern.replace("[A-Z0-9_]+", "…").replace("[A-Z_]+", "…").replace("|", ", ")


def _setting_names(kind: BackendKind) -> list[str]:
    rules = RULES[kind]
    return [*rules.required, rules.place, *rules.optional]


def _lines(settings: dict[str, Any]) -> list[str]:
    return [f"{name} = {_text(value)}" for name, value in settings.items()]


def _text(value: Any) -> str:
    return (TRUE if value else FALSE) if isinstance(value, bool) else str(value)


def _value(text: str) -> str | bool:
    return {TRUE: True, FALSE: False}.get(text, text)


def _pairs(text: str) -> dict[str, str]:
    """`name = value` on each line, as Terraform's own files have it; quotes may stand around the value."""
    pairs = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        name, separator, value = line.partition("=")
        if not separator or not name.strip():
            raise BadInput(f"Line {number}: expected name = value")
        pairs[name.strip()] = value.strip().strip('"')
    return pairs
