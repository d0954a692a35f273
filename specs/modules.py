"""Modules that lie inside the configuration: read as far as they are called, so that one that is missing,
does not parse or calls itself is refused before anything is queued."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from console.errors import BadInput

#: More than anybody can follow, and less than would end this reader.
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
    #: How much is parsed here; what is beyond it Terraform itself reads first.
    budget_bytes: int
    _seen: set[str] = field(default_factory=set)

    def check(self, parsed: Parsed, *, folder: str = "", trail: tuple[str, ...] = ()) -> None:
        """Follow the calls of one module, and of those that it calls."""
        self._seen.add(folder)
        for call in _calls(parsed, folder):
            if call.folder in (*trail, folder):
                raise _in_a_circle(call)
            if len(trail) >= MAX_NESTED:
                raise _refused(call, f"is nested more than {MAX_NESTED} modules deep. Call it further up")
            if call.folder not in self._seen:
                called = self._parsed(call)
                self.check(called, folder=call.folder, trail=(*trail, folder))

    def _parsed(self, call: Call) -> Parsed:
        texts = {path: text for path, text in self.files.items() if _is_in(path, call.folder)}
        if not texts:
            raise _missing(call)
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
    """Each call's name and source; HCL gives a list of blocks, JSON one object of all of them."""
    blocks = document.get("module", [])
    for block in blocks if isinstance(blocks, list) else [blocks]:
        for name, body in block.items() if isinstance(block, dict) else ():
            if isinstance(body, dict) and isinstance(body.get("source"), str):
                yield name.strip('"'), body["source"]


def _folder_of(folder: str, source: str) -> str | None:
    """The folder that a source names; None for what lies elsewhere, which only Terraform can fetch."""
    if not source.startswith(("./", "../")) and source not in (".", ".."):
        return None
    found = posixpath.normpath(posixpath.join(folder, source))
    if found == ".":
        return ""
    return None if found.startswith("..") else found


def _line_of(text: str, name: str) -> int:
    found = re.search(rf'^[ \t]*(?:module[ \t]+)?"?{re.escape(name)}"?[ \t]*[{{:]', text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _in_a_circle(call: Call) -> BadInput:
    return _refused(call, f"calls {call.source!r}, which leads back to itself. Take the call out")


def _missing(call: Call) -> BadInput:
    return _refused(call, f"is in {call.source!r}, and no .tf file is there. Add the folder, or correct it")


def _refused(call: Call, why: str) -> BadInput:
    return BadInput(
        f"{call.file}, line {call.line}: module {call.name!r} {why}.",
        field="source.files",
        file=call.file,
        line=call.line,
    )
