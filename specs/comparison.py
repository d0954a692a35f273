"""What differs between two revisions: their source, their files line by line, their variables by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from console.errors import BadInput
from runner.protocol import MASK
from specs.document import files_of
from specs.models import Revision
from specs.variables import CATEGORIES, bundle_of

#: Equal lines that are shown around a change.
CONTEXT = 3
#: Comparing takes time that grows with the square of the lines; longer files are shown as one change.
MAX_LINES = 4_000

ADDED, REMOVED, CHANGED, SAME, GAP = "added", "removed", "changed", "same", "gap"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the two columns; a number is absent where that side has no line."""

    kind: str
    left_number: int | None = None
    left: str = ""
    right_number: int | None = None
    right: str = ""


@dataclass(frozen=True, slots=True)
class FileChange:
    name: str
    kind: str
    rows: list[Row]

    @property
    def added(self) -> int:
        return sum(row.right_number is not None for row in self.rows if row.kind not in (SAME, GAP))

    @property
    def removed(self) -> int:
        return sum(row.left_number is not None for row in self.rows if row.kind not in (SAME, GAP))


@dataclass(frozen=True, slots=True)
class VariableChange:
    """Of a sensitive one, only that it changed."""

    name: str
    category: str
    kind: str
    before: Any
    after: Any
    sensitive: bool


@dataclass(frozen=True, slots=True)
class SourceChange:
    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Comparison:
    older: Revision
    newer: Revision
    source: list[SourceChange]
    files: list[FileChange]
    variables: list[VariableChange]
    #: Why files could not be compared, when they are elsewhere and cannot be read.
    unreadable: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.source or self.files or self.variables)


def compare(older: Revision, newer: Revision) -> Comparison:
    files, unreadable = _file_changes(older.document, newer.document)
    return Comparison(
        older=older,
        newer=newer,
        source=list(_source_changes(older.document["source"], newer.document["source"])),
        files=files,
        variables=list(_variable_changes(older.document, newer.document)),
        unreadable=unreadable,
    )


def compare_texts(before: str, after: str) -> list[Row]:
    """The two texts side by side: what changed, with a few equal lines around it."""
    left, right = before.splitlines(), after.splitlines()
    if max(len(left), len(right)) > MAX_LINES:
        return list(_block(left, right, 0, 0))
    rows: list[Row] = []
    for group in SequenceMatcher(None, left, right, autojunk=False).get_grouped_opcodes(CONTEXT):
        if rows or group[0][1] > 0:
            rows.append(Row(GAP))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                rows += [
                    Row(SAME, i1 + n + 1, left[i1 + n], j1 + n + 1, left[i1 + n]) for n in range(i2 - i1)
                ]
            else:
                rows += _block(left[i1:i2], right[j1:j2], i1, j1)
    return rows


def _block(left: list[str], right: list[str], left_start: int, right_start: int) -> Iterator[Row]:
    for n in range(max(len(left), len(right))):
        both = n < len(left) and n < len(right)
        yield Row(
            CHANGED if both else REMOVED if n < len(left) else ADDED,
            left_start + n + 1 if n < len(left) else None,
            left[n] if n < len(left) else "",
            right_start + n + 1 if n < len(right) else None,
            right[n] if n < len(right) else "",
        )


def _source_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[SourceChange]:
    for name in ("kind", "name", "url", "ref", "path", "commit"):
        if before.get(name) != after.get(name):
            yield SourceChange(name, str(before.get(name) or ""), str(after.get(name) or ""))
    if before.get("credential") != after.get("credential"):
        shown = (MASK if one.get("credential") else "" for one in (before, after))
        yield SourceChange("token", *shown)


def _file_changes(older: dict[str, Any], newer: dict[str, Any]) -> tuple[list[FileChange], str]:
    try:
        before, after = files_of(older), files_of(newer)
    except BadInput as error:
        return [], str(error)
    return [
        FileChange(name, _kind(before, after, name), compare_texts(before.get(name, ""), after.get(name, "")))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ], ""


def _variable_changes(older: dict[str, Any], newer: dict[str, Any]) -> Iterator[VariableChange]:
    left, right = bundle_of(older), bundle_of(newer)
    for category in CATEGORIES:
        before = _values(left, category)
        after = _values(right, category)
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                yield _variable_change(name, category, before, after)


def _values(bundle: dict[str, Any], category: str) -> dict[str, tuple[bool, Any]]:
    """By name: whether it is sensitive, and its value, which of a sensitive one is the digest."""
    plain = {name: (False, value) for name, value in bundle[category].items()}
    return plain | {name: (True, digest) for name, digest in bundle["secrets"][category].items()}


def _variable_change(
    name: str, category: str, before: Mapping[str, tuple[bool, Any]], after: Mapping[str, tuple[bool, Any]]
) -> VariableChange:
    was_secret, old = before.get(name, (False, None))
    is_secret, new = after.get(name, (False, None))
    sensitive = was_secret or is_secret
    return VariableChange(
        name=name,
        category=category,
        kind=_kind(before, after, name),
        before=None if sensitive else old,
        after=None if sensitive else new,
        sensitive=sensitive,
    )


def _kind(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> str:
    return CHANGED if name in before and name in after else REMOVED if name in before else ADDED
