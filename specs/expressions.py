"""What the expressions of a configuration refer to. Text that only looks like a reference is none."""

import re
from collections.abc import Iterator
from typing import Any

#: Inside an expression: what another block is called by.
REFERENCE = re.compile(
    r"(?<![\w.])(?:(local|module)\.([A-Za-z_][\w-]*)|data\.([A-Za-z_][\w-]*)\.([A-Za-z_][\w-]*)"
    r"|([a-z][a-z0-9]*_[\w-]*)\.([A-Za-z_][\w-]*))"
)
#: What begins or ends code in a text, and text in code; an escaped sign is neither.
SIGN = re.compile(r'\$\$\{|%%\{|\$\{|%\{|\\.|["{}]', re.DOTALL)
ESCAPED = ("$${", "%%{")
OPENING = ("${", "%{", "{")
TEXT, CODE = "text", "code"


def references(value: Any) -> set[str]:
    """The addresses that a parsed value refers to, such as `local.region` and `data.aws_vpc.main`."""
    if isinstance(value, dict):
        return set().union(*(references(item) for item in [*value.values(), *value.keys()]), set())
    if isinstance(value, list):
        return set().union(*(references(item) for item in value), set())
    if not isinstance(value, str) or "." not in value:
        return set()
    return {_address(found) for code in code_in(value) for found in REFERENCE.finditer(code)}


def code_in(template: str) -> Iterator[str]:
    """The stretches of code in a template: within `${…}` and `%{…}`, and not within quotes there."""
    inside, start = [TEXT], 0
    for sign in SIGN.finditer(template):
        if inside[-1] == CODE:
            yield template[start : sign.start()]
        _step(inside, sign[0])
        start = sign.end()


def _step(inside: list[str], sign: str) -> None:
    """Where one is after the sign; the outermost text has no quotes of its own."""
    if inside[-1] == CODE:
        if sign == '"':
            inside.append(TEXT)
        elif sign in OPENING:
            inside.append(CODE)
        elif sign == "}":
            inside.pop()
    elif sign in ESCAPED:
        return
    elif sign in ("${", "%{"):
        inside.append(CODE)
    elif sign == '"' and len(inside) > 1:
        inside.pop()


def _address(found: re.Match[str]) -> str:
    kind, name, data_type, data_name, resource_type, resource_name = found.groups()
    if kind:
        return f"{kind}.{name}"
    return f"data.{data_type}.{data_name}" if data_type else f"{resource_type}.{resource_name}"
