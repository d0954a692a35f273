"""Modules inside the configuration: read along their calls, to refuse one that is missing, does not parse or
calls itself before anything is queued."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from console.errors import BadInput

#: More than any real configuration, and less than Python's recursion limit.
MAX_NESTED = 50
#: A module's files, parsed, by path: their text, and what is in it.
Parsed = Mapping[str, tuple[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Call:
    """A `module` block that names a folder of the same configuration."""

    name: str
    source: str
    folder: str
    file: str
    line: int


@dataclass(slots=True)
class ModuleReader:
    files: Mapping[str, str]
    parse: Callable[[str, str], dict[str, Any]]
    #: The bytes that may still be parsed; anything beyond is left to Terraform.
    budget_bytes: int
    _checked_folders: set[str] = field(default_factory=set)

    def check(self, parsed: Parsed, *, folder: str = "", trail: tuple[str, ...] = ()) -> None:
        """Follow the calls of one module, and of those that it calls."""
        self._checked_folders.add(folder)
        for call in _calls(parsed, folder):
            if call.folder in (*trail, folder):
                raise _circular_call(call)
            if len(trail) >= MAX_NESTED:
                raise _bad_call(
                    call, f"is nested more than {MAX_NESTED} modules deep. Call it from a module further up"
                )
            if call.folder not in self._checked_folders:
                called = self._parse_folder(call)
                self.check(called, folder=call.folder, trail=(*trail, folder))

    def _parse_folder(self, call: Call) -> Parsed:
        texts = {path: text for path, text in self.files.items() if _is_in(path, call.folder)}
        if not texts:
            raise _missing_folder(call)
        self.budget_bytes -= sum(len(text.encode()) for text in texts.values())
        if self.budget_bytes < 0:
            return {}
        return {path: (text, self.parse(path, text)) for path, text in texts.items()}


def _is_in(path: str, folder: str) -> bool:
    return posixpath.dirname(path) == folder and path.endswith((".tf", ".tf.json"))


def _calls(parsed: Parsed, folder: str) -> Iterator[Call]:
    for path, (text, document) in parsed.items():
        for name, source in _sources(document):
            inside = _folder_of(folder, source)
            if inside is not None:
                yield Call(name, source, inside, path, _line_of(text, name))


def _sources(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each call's name and source; HCL has a list of blocks, JSON one object with all of them."""
    blocks = document.get("module", [])
    for block in blocks if isinstance(blocks, list) else [blocks]:
        for name, body in block.items() if isinstance(block, dict) else ():
            if isinstance(body, dict) and isinstance(body.get("source"), str):
                yield name.strip('"'), body["source"]


def _folder_of(folder: str, source: str) -> str | None:
    """Return the folder that a source names, or None for a source that only Terraform can fetch."""
    if not source.startswith(("./", "../")) and source not in (".", ".."):
        return None
    path = posixpath.normpath(posixpath.join(folder, source))
    if path == ".":
        return ""
    return None if path.startswith("..") else path


def _line_of(text: str, name: str) -> int:
    match = re.search(rf'^[ \t]*(?:module[ \t]+)?"?{re.escape(name)}"?[ \t]*[{{:]', text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else 1


def _circular_call(call: Call) -> BadInput:
    return _bad_call(call, f"calls {call.source!r}, which calls itself again. Remove the call")


def _missing_folder(call: Call) -> BadInput:
    return _bad_call(
        call, f"is in {call.source!r}, but that folder has no .tf file. Add the folder, or correct the source"
    )


def _bad_call(call: Call, why: str) -> BadInput:
    return BadInput(
        f"{call.file}, line {call.line}: module {call.name!r} {why}.",
        field="source.files",
        file=call.file,
        line=call.line,
    )
