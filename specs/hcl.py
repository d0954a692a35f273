"""Reading one file of HCL into plain values: blocks as lists, expressions as `${…}`, as JSON has them."""

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
    """The text has the form of HCL and makes no sense in it."""

    def __init__(self, why: str, lineno: int) -> None:
        super().__init__(why)
        self.lineno = lineno


def read_hcl(text: str) -> dict[str, Any]:
    """Raises lark's `UnexpectedInput` where the grammar ends, `NotHcl`, or `RecursionError`."""
    text = text.removeprefix("\ufeff") + "\n"
    try:
        tree = _tree(text)
    except VisitError as error:
        if isinstance(error.orig_exc, RecursionError):
            raise error.orig_exc from error
        raise NotHcl(str(error.orig_exc), getattr(getattr(error.obj, "meta", None), "line", 1)) from error
    return _body(tree.body, text)


def _tree(text: str) -> Any:
    """The library does not know `${~ x ~}`, which takes spaces off: without the signs it is the same here."""
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
                blocks.append(_labelled(labels, _body(child.body, text)))
    return result


def _labelled(labels: list[str], body: dict[str, Any]) -> dict[str, Any]:
    for label in reversed(labels):
        body = {label: body}
    return body


def _value(expression: Any, text: str) -> Any:
    written = text[expression._meta.start_pos : expression._meta.end_pos]
    if (lines := _heredoc(written)) is not None:
        return lines
    try:
        return expression.serialize(_OPTIONS)
    except (TypeError, RuntimeError) as error:
        if isinstance(error, RecursionError):
            raise
        # The library trips over some valid expressions, such as [for x in y : 1]. They are no literals.
        return "${" + written + "}"


def _heredoc(written: str) -> str | None:
    """The lines of a heredoc, as Terraform has them: the library escapes quotes and drops the last end."""
    found = HEREDOC.fullmatch(written.strip())
    if found is None:
        return None
    lines = found["lines"].splitlines(keepends=True)
    if found["trim"]:
        indents = (len(line) - len(line.lstrip(" \t")) for line in lines if line.strip())
        indent = min(indents, default=0)
        lines = [line[indent:] if line.strip() else line.lstrip(" \t") for line in lines]
    return "".join(lines)
