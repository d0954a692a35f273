"""Terraform's types: parse a type constraint, and check a JSON value against it."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import Any

TOKEN = re.compile(r"\s*([A-Za-z_][\w-]*|\"(?:[^\"\\]|\\.)*\"|-?\d+(?:\.\d+)?|[()\[\]{},=:])")
#: A number as Terraform reads it from text; Python would take `1_000` and `nan` as well.
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

PRIMITIVES = ("string", "number", "bool", "any")
COLLECTIONS = ("list", "set", "map")


@dataclass(frozen=True, slots=True)
class TerraformType:
    """A type constraint: `list(string)` is a list whose element is a string."""

    kind: str
    element: TerraformType | None = None
    attributes: dict[str, TerraformType] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    elements: tuple[TerraformType, ...] = ()

    def __str__(self) -> str:
        if self.kind in COLLECTIONS:
            return f"{self.kind}({self.element})"
        if self.kind == "object":
            return "object({" + ", ".join(map(self._format_attribute, self.attributes)) + "})"
        if self.kind == "tuple":
            return "tuple([" + ", ".join(map(str, self.elements)) + "])"
        return self.kind

    def _format_attribute(self, name: str) -> str:
        kind = self.attributes[name]
        return f"{name} = optional({kind})" if name in self.optional else f"{name} = {kind}"


ANY = TerraformType("any")


class NotAType(ValueError):
    """The text is not a type constraint."""


def parse_type(text: str) -> TerraformType:
    tokens = _tokens(text.strip())
    try:
        parsed = _parse(tokens)
    except RecursionError as error:
        raise NotAType("the type is nested too deeply") from error
    if tokens:
        raise NotAType(f"{text!r} is not a type: {tokens[0]!r} was not expected")
    return parsed


def _tokens(text: str) -> deque[str]:
    tokens: deque[str] = deque()
    end = 0
    while end < len(text):
        match = TOKEN.match(text, end)
        if match is None:
            raise NotAType(f"{text[:200]!r} is not a type")
        tokens.append(match[1])
        end = match.end()
    return tokens


def mismatch(kind: TerraformType, value: Any, where: str) -> str | None:
    """Describe why the value does not match, with the place in it; None if it matches."""
    if value is None or kind.kind == "any":
        return None
    if kind.kind in PRIMITIVES:
        return (
            None if _fits_primitive(kind.kind, value) else f"{where}: expected {kind}, got {_kind_of(value)}"
        )
    if kind.kind in ("list", "set", "tuple"):
        return _mismatch_in_list(kind, value, where)
    return _mismatch_in_object(kind, value, where)


def _fits_primitive(kind: str, value: Any) -> bool:
    """Return true if Terraform can convert the value without loss."""
    if kind == "string":
        return isinstance(value, str | int | float | bool)
    if kind == "bool":
        return isinstance(value, bool) or value in ("true", "false")
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float) or (isinstance(value, str) and _is_number(value))


def _mismatch_in_list(kind: TerraformType, value: Any, where: str) -> str | None:
    if not isinstance(value, list):
        return f"{where}: expected {kind}, got {_kind_of(value)}"
    if kind.kind == "tuple" and len(value) != len(kind.elements):
        return f"{where}: expected {len(kind.elements)} elements, got {len(value)}"
    kinds = kind.elements or (kind.element or ANY,) * len(value)
    mismatches = (
        mismatch(element_type, item, f"{where}[{index}]")
        for index, (element_type, item) in enumerate(zip(kinds, value, strict=True))
    )
    return next(filter(None, mismatches), None)


def _mismatch_in_object(kind: TerraformType, value: Any, where: str) -> str | None:
    if not isinstance(value, dict):
        return f"{where}: expected {kind}, got {_kind_of(value)}"
    if kind.kind == "map":
        mismatches = (mismatch(kind.element or ANY, item, f"{where}.{key}") for key, item in value.items())
        return next(filter(None, mismatches), None)
    for name, attribute in kind.attributes.items():
        if name not in value and name not in kind.optional:
            return f"{where}.{name}: is required"
        if name in value and (wrong := mismatch(attribute, value[name], f"{where}.{name}")):
            return wrong
    return None


def _is_number(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None


def _kind_of(value: Any) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "list", dict: "map"}
    return names.get(type(value), type(value).__name__)


def _parse(tokens: deque[str]) -> TerraformType:
    word = _next(tokens)
    if word in PRIMITIVES:
        return TerraformType(word)
    if word in COLLECTIONS:
        if not tokens or tokens[0] != "(":
            return TerraformType(word, element=ANY)  # the old shorthand `list`
        _expect(tokens, "(")
        element = _parse(tokens)
        _expect(tokens, ")")
        return TerraformType(word, element=element)
    if word == "object":
        return _parse_object(tokens)
    if word == "tuple":
        return _parse_tuple(tokens)
    raise NotAType(f"{word!r} is not a type")


def _parse_object(tokens: deque[str]) -> TerraformType:
    _expect(tokens, "(")
    _expect(tokens, "{")
    attributes: dict[str, TerraformType] = {}
    optional = set()
    while tokens and tokens[0] != "}":
        name = _next(tokens).strip('"')
        _expect(tokens, "=", ":")
        if tokens and tokens[0] == "optional":
            optional.add(name)
            attributes[name] = _parse_optional(tokens)
        else:
            attributes[name] = _parse(tokens)
        if tokens and tokens[0] == ",":
            tokens.popleft()
    _expect(tokens, "}")
    _expect(tokens, ")")
    return TerraformType("object", attributes=attributes, optional=frozenset(optional))


def _parse_optional(tokens: deque[str]) -> TerraformType:
    _expect(tokens, "optional")
    _expect(tokens, "(")
    kind = _parse(tokens)
    depth = 1  # the default may be any expression: skip to the bracket that closes optional(
    while depth:
        bracket = _next(tokens)
        depth += bracket in ("(", "[", "{")
        depth -= bracket in (")", "]", "}")
    return kind


def _parse_tuple(tokens: deque[str]) -> TerraformType:
    _expect(tokens, "(")
    _expect(tokens, "[")
    elements = []
    while tokens and tokens[0] != "]":
        elements.append(_parse(tokens))
        if tokens and tokens[0] == ",":
            tokens.popleft()
    _expect(tokens, "]")
    _expect(tokens, ")")
    return TerraformType("tuple", elements=tuple(elements))


def _next(tokens: deque[str]) -> str:
    if not tokens:
        raise NotAType("the type ends too early")
    return tokens.popleft()


def _expect(tokens: deque[str], *expected: str) -> None:
    token = _next(tokens)
    if token not in expected:
        raise NotAType(f"expected {expected[0]!r}, got {token!r}")
