"""Correct the OpenAPI document where the generator describes different answers than the views send.

It describes what a view says it answers, `Something(many=True)`, as a bare array. No answer is
one: an object can have more beside its list later, such as `pagination`, without breaking anybody.
"""

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]


def wrap_lists(result: Schema, **_: Any) -> Schema:
    """The generator's hook: called with the finished document of the people's API."""
    for operations in result.get("paths", {}).values():
        for operation in operations.values():
            for answer in operation.get("responses", {}).values():
                content = answer.get("content", {}).get("application/json")
                if content and content.get("schema", {}).get("type") == "array":
                    content["schema"] = _wrap_array(content["schema"])
    return result


def leave_anything_open(result: Schema, **_: Any) -> Schema:
    """Drop `oneOf` with an empty schema: it accepts anything, so null would match two choices."""
    for part in _parts(result):
        if isinstance(choices := part.get("oneOf"), list) and {} in choices:
            del part["oneOf"]
    return result


def _parts(value: Any) -> Iterator[Schema]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _parts(item)


def _wrap_array(array: Schema) -> Schema:
    return {"type": "object", "required": ["data"], "properties": {"data": array}}
