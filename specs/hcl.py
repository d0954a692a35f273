"""Read one HCL file into plain values: blocks as lists, expressions as `${…}`, as in JSON."""

from __future__ import annotations

import re
from typing import Any

import hcl2
from hcl2.rules.base import AttributeRule, BlockRule, BodyRule
from hcl2.utils import SerializationOptions
from lark.exceptions import UnexpectedInput, VisitError

_OPTIONS = SerializationOptions(
    explicit_blocks=False, strip_string_quotes=True, preserve_heredocs=False, with_comments=False
)


#: A value that is a heredoc and nothing else.
HEREDOC = re.compile(r"<<(?P<trim>-?)(?P<end>[\w-]+)\r?\n(?P<lines>(?:.*\n)*?)[ \t]*(?P=end)")


class NotHcl(ValueError):
    """The text follows HCL's grammar but is not valid."""

    def __init__(self, why: str, lineno: int) -> None:
        super().__init__(why)
        self.lineno = lineno


def read_hcl(text: str) -> dict[str, Any]:
    """Parse the text, or raise lark's `UnexpectedInput`, `NotHcl` or `RecursionError`."""
    text = text.removeprefix("\ufeff") + "\n"
    try:
        tree = _tree(text)
    except VisitError as error:
        if isinstance(error.orig_exc, RecursionError):
            raise error.orig_exc from error
        raise NotHcl(str(error.orig_exc), getattr(getattr(error.obj, "meta", None), "line", 1)) from error
    return _body(tree.body, text)


def _tree(text: str) -> Any:
    """Parse the text without `~` in `${~ x ~}`, which the library does not know and only trims spaces."""
    try:
        return hcl2.parses(text)
    except UnexpectedInput:
        if "${~" not in text and "~}" not in text:
            raise
        return hcl2.parses(text.replace("${~", "${ ").replace("~}", " }"))


def _body(body: BodyRule, text: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for child in body.children:
        if isinstance(child, AttributeRule):
            result[child.identifier.serialize(_OPTIONS)] = _value(child.expression, text)
        elif isinstance(child, BlockRule):
            kind, *labels = (str(label.serialize(_OPTIONS)) for label in child.labels)
            blocks = result.setdefault(kind, [])
            if isinstance(blocks, list):  # an attribute of the same name: Terraform will say so
                blocks.append(_nest_in_labels(labels, _body(child.body, text)))
    return result


def _nest_in_labels(labels: list[str], body: dict[str, Any]) -> dict[str, Any]:
    for label in reversed(labels):
        body = {label: body}
    return body


def _value(expression: Any, text: str) -> Any:
    source = text[expression._meta.start_pos : expression._meta.end_pos]
    if (lines := _heredoc(source)) is not None:
        return lines
    try:
        return expression.serialize(_OPTIONS)
    except (TypeError, RuntimeError) as error:
        if isinstance(error, RecursionError):
            raise
        # The library fails on some valid expressions, such as [for x in y : 1]. They are not literals.
        return "${" + source + "}"


def _heredoc(source: str) -> str | None:
    """Return a heredoc's lines as Terraform does: the library escapes quotes and drops the last newline."""
    match = HEREDOC.fullmatch(source.strip())
    if match is None:
        return None
    lines = match["lines"].splitlines(keepends=True)
    if match["trim"]:
        indents = (len(line) - len(line.lstrip(" \t")) for line in lines if line.strip())
        indent = min(indents, default=0)
        lines = [line[indent:] if line.strip() else line.lstrip(" \t") for line in lines]
    return "".join(lines)
