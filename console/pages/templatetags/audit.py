"""How the audit record's words look to people."""

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
MAX_SHOWN = 120


@register.filter
def kind_name(kind: str) -> str:
    return NAMES.get(kind, kind)


@register.filter
def shown(given: Any) -> str:
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
