"""The references in a configuration's expressions. Text that only looks like a reference is ignored."""

import re
from collections.abc import Iterator
from typing import Any

#: The address of another block inside an expression.
REFERENCE = re.compile(
    r"(?<![\w.])(?:(local|module)\.([A-Za-z_][\w-]*)|data\.([A-Za-z_][\w-]*)\.([A-Za-z_][\w-]*)"
    r"|([a-z][a-z0-9]*_[\w-]*)\.([A-Za-z_][\w-]*))"
)
#: The signs that begin or end code in a text, and text in code. An escaped sign does neither.
SIGN = re.compile(r'\$\$\{|%%\{|\$\{|%\{|\\.|["{}]', re.DOTALL)
ESCAPED = ("$${", "%%{")
OPENING = ("${", "%{", "{")
TEXT, CODE = "text", "code"


def references(value: Any) -> set[str]:
    """Return the addresses that a parsed value refers to, such as `local.region` and `data.aws_vpc.main`."""
    if isinstance(value, dict):
        return set().union(*(references(item) for item in [*value.values(), *value.keys()]), set())
    if isinstance(value, list):
        return set().union(*(references(item) for item in value), set())
    if not isinstance(value, str) or "." not in value:
        return set()
    return {_address(match) for code in code_in(value) for match in REFERENCE.finditer(code)}


def code_in(template: str) -> Iterator[str]:
    """Yield the code in a template: within `${…}` and `%{…}`, except within quotes there."""
    open_parts, start = [TEXT], 0
    for sign in SIGN.finditer(template):
        if open_parts[-1] == CODE:
            yield template[start : sign.start()]
        _step(open_parts, sign[0])
        start = sign.end()


def _step(open_parts: list[str], sign: str) -> None:
    """Update the stack of open parts by one sign; the outermost text has no quotes of its own."""
    if open_parts[-1] == CODE:
        if sign == '"':
            open_parts.append(TEXT)
        elif sign in OPENING:
            open_parts.append(CODE)
        elif sign == "}":
            open_parts.pop()
    elif sign in ESCAPED:
        return
    elif sign in ("${", "%{"):
        open_parts.append(CODE)
    elif sign == '"' and len(open_parts) > 1:
        open_parts.pop()


def _address(match: re.Match[str]) -> str:
    kind, name, data_type, data_name, resource_type, resource_name = match.groups()
    if kind:
        return f"{kind}.{name}"
    return f"data.{data_type}.{data_name}" if data_type else f"{resource_type}.{resource_name}"
