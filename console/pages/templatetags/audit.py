"""Filters that show the audit record's values to people."""

import json
from typing import Any

from django import template

register = template.Library()

#: Where the name of a table is not what people call it.
NAMES = {
    "apitoken": "API token",
    "cloudidentity": "identity",
    "ownblueprint": "blueprint",
    "registrationtoken": "registration token",
    "runnercredential": "runner credential",
    "statelock": "state lock",
    "stateversion": "state version",
    "user": "person",
    "variableset": "variable set",
}
#: More of a value than this belongs in the export.
MAX_CHARS = 120


@register.filter
def kind_name(kind: str) -> str:
    return NAMES.get(kind, kind)


@register.filter
def brief(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}…"
