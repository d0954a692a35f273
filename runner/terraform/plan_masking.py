"""Masks the sensitive values of a plan document, as `terraform show -json` prints it.

The document holds sensitive values in clear, beside marks that say where they are.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import zip_longest
from typing import Any

from runner.protocol import MASK, MASK_CHANGED

Document = dict[str, Any]

#: A copy of "on" or "admin" says nothing; one of a longer secret does.
_MIN_COPIED_CHARS = 6


def mask(document: Document, *, sensitive_variables: Container[str] = ()) -> None:
    """Replace, in place, every value that the document itself or the console calls sensitive."""
    configuration = document.get("configuration", {}).get("root_module", {})
    _mask_variables(document, configuration, sensitive_variables)
    _mask_configuration(configuration, sensitive_variables)
    for change in _changes(document):
        _mask_change(change)
    for values in (document.get("planned_values"), document.get("prior_state", {}).get("values")):
        _mask_values(values or {})


def sensitive_values(document: Document) -> Iterator[Any]:
    """Return the values that `mask` hides among outputs and variables, to mask them in logs as well."""
    declared = document.get("configuration", {}).get("root_module", {}).get("variables", {})
    for name, variable in document.get("variables", {}).items():
        if declared.get(name, {}).get("sensitive"):
            yield variable.get("value")
    for values in (document.get("planned_values"), document.get("prior_state", {}).get("values")):
        for output in (values or {}).get("outputs", {}).values():
            if output.get("sensitive"):
                yield output.get("value")


def _changes(document: Document) -> Iterator[Document]:
    for key in ("resource_changes", "resource_drift"):
        for resource in document.get(key, ()):
            yield resource.get("change", {})
    for deferred in document.get("deferred_changes", ()):
        yield deferred.get("resource_change", {}).get("change", {})
    yield from document.get("output_changes", {}).values()


def _mask_change(change: Document) -> None:
    before, after = change.get("before"), change.get("after")
    marks = {"before": change.get("before_sensitive"), "after": change.get("after_sensitive")}
    secrets = {*_marked_texts(before, marks["before"]), *_marked_texts(after, marks["after"])}
    if "after" in change:
        change["after"] = _mask_marked(after, _with_copies(after, marks["after"], secrets), before)
    if "before" in change:
        change["before"] = _mask_marked(before, _with_copies(before, marks["before"], secrets))


def _mask_values(values: Document) -> None:
    for output in values.get("outputs", {}).values():
        if output.get("sensitive") and "value" in output:
            output["value"] = MASK
    for resource in _resources(values.get("root_module", {})):
        if "values" in resource:
            values, marks = resource["values"], resource.get("sensitive_values")
            secrets = set(_marked_texts(values, marks))
            resource["values"] = _mask_marked(values, _with_copies(values, marks, secrets))


def _resources(module: Document) -> Iterator[Document]:
    yield from module.get("resources", ())
    for child in module.get("child_modules", ()):
        yield from _resources(child)


def _mask_variables(document: Document, configuration: Document, sensitive: Container[str]) -> None:
    declared = configuration.get("variables", {})
    for name, variable in document.get("variables", {}).items():
        if name in sensitive or declared.get(name, {}).get("sensitive"):
            variable["value"] = MASK


def _mask_configuration(module: Document, sensitive: Container[str]) -> None:
    """Mask defaults of sensitive variables, and constants that a module call passes to them."""
    for name, variable in module.get("variables", {}).items():
        if "default" in variable and (name in sensitive or variable.get("sensitive")):
            variable["default"] = MASK
    for call in module.get("module_calls", {}).values():
        called = call.get("module", {})
        for name, expression in call.get("expressions", {}).items():
            if called.get("variables", {}).get(name, {}).get("sensitive") and "constant_value" in expression:
                expression["constant_value"] = MASK
        _mask_configuration(called, ())


def _marked_texts(value: Any, marks: Any) -> Iterator[str]:
    """Return the marked texts, except short ones, of which a copy says nothing."""
    if marks is True:
        yield from (text for text in _texts(value) if len(text) >= _MIN_COPIED_CHARS)
    elif isinstance(marks, dict) and isinstance(value, dict):
        for key, item in value.items():
            yield from _marked_texts(item, marks.get(key))
    elif isinstance(marks, list) and isinstance(value, list):
        for item, mark in zip(value, marks, strict=False):
            yield from _marked_texts(item, mark)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(item)


def _with_copies(value: Any, marks: Any, secrets: Container[str]) -> Any:
    """Add a mark to each copy of a secret: a resource may return its arguments unmarked."""
    if marks is True or (isinstance(value, str) and value in secrets):
        return True
    if isinstance(value, dict):
        item_marks = marks if isinstance(marks, dict) else {}
        return {key: _with_copies(item, item_marks.get(key), secrets) for key, item in value.items()}
    if isinstance(value, list):
        marks_in_order = marks if isinstance(marks, list) else []
        parts = zip_longest(value, marks_in_order[: len(value)])
        return [_with_copies(item, mark, secrets) for item, mark in parts]
    return marks


def _mask_marked(value: Any, marks: Any, before: Any = None) -> Any:
    """Replace each marked part; marks have the value's shape, with `true` at secrets."""
    if marks is True:
        return None if value is None else MASK if before in (None, value) else MASK_CHANGED
    if isinstance(marks, dict) and isinstance(value, dict):
        old = before if isinstance(before, dict) else {}
        return {key: _mask_marked(item, marks.get(key), old.get(key)) for key, item in value.items()}
    if isinstance(marks, list) and isinstance(value, list):
        olds = before if isinstance(before, list) else []
        parts = zip_longest(value, marks[: len(value)], olds[: len(value)])
        return [_mask_marked(item, mark, old) for item, mark, old in parts]
    return value
