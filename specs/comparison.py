"""The differences between two revisions: source, files line by line, variables by name."""

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
    """A changed variable. A sensitive one is listed without its values."""

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
    #: The reason why files could not be read and compared, if any.
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
    """Return the two texts side by side: each change with a few equal lines around it."""
    before_lines, after_lines = before.splitlines(), after.splitlines()
    if max(len(before_lines), len(after_lines)) > MAX_LINES:
        return list(_changed_rows(before_lines, after_lines, 0, 0))
    rows: list[Row] = []
    for group in SequenceMatcher(None, before_lines, after_lines, autojunk=False).get_grouped_opcodes(
        CONTEXT
    ):
        if rows or group[0][1] > 0:
            rows.append(Row(GAP))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                rows += [
                    Row(SAME, i1 + n + 1, before_lines[i1 + n], j1 + n + 1, before_lines[i1 + n])
                    for n in range(i2 - i1)
                ]
            else:
                rows += _changed_rows(before_lines[i1:i2], after_lines[j1:j2], i1, j1)
    return rows


def _changed_rows(before: list[str], after: list[str], before_start: int, after_start: int) -> Iterator[Row]:
    for n in range(max(len(before), len(after))):
        both = n < len(before) and n < len(after)
        yield Row(
            CHANGED if both else REMOVED if n < len(before) else ADDED,
            before_start + n + 1 if n < len(before) else None,
            before[n] if n < len(before) else "",
            after_start + n + 1 if n < len(after) else None,
            after[n] if n < len(after) else "",
        )


def _source_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[SourceChange]:
    for name in ("kind", "name", "url", "ref", "path", "commit"):
        if before.get(name) != after.get(name):
            yield SourceChange(name, str(before.get(name) or ""), str(after.get(name) or ""))
    if before.get("credential") != after.get("credential"):
        masks = (MASK if source.get("credential") else "" for source in (before, after))
        yield SourceChange("token", *masks)


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
    older_bundle, newer_bundle = bundle_of(older), bundle_of(newer)
    for category in CATEGORIES:
        before = _values(older_bundle, category)
        after = _values(newer_bundle, category)
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                yield _variable_change(name, category, before, after)


def _values(bundle: dict[str, Any], category: str) -> dict[str, tuple[bool, Any]]:
    """Map each name to a sensitive flag and a value, or the digest of a sensitive value."""
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
