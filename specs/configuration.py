"""Reading a Terraform configuration: its variables, and what is wrong with it before anything is queued."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath
from typing import Any

import hcl2
from hcl2.utils import SerializationOptions
from lark.exceptions import UnexpectedInput

from console.errors import BadInput
from specs.terraform_types import ANY, NotAType, TerraformType, mismatch, parse_type

MAX_FILES = 500
MAX_TOTAL_BYTES = 5 * 1024 * 1024
#: The parser reads some tens of kilobytes a second; this keeps a request within reason.
MAX_PARSED_BYTES = 512 * 1024
MAX_PATH_CHARS = 200

#: Inside an expression: what another block is called by.
REFERENCE = re.compile(
    r"(?<![\w.])(?:(var|local|module)\.([A-Za-z_][\w-]*)|data\.([A-Za-z_][\w-]*)\.([A-Za-z_][\w-]*)"
    r"|([a-z][a-z0-9]*_[\w-]*)\.([A-Za-z_][\w-]*))"
)
#: A file without such a line declares no variable.
DECLARATION = re.compile(r'^\s*(?:variable\b|"variable"\s*:)', re.MULTILINE)

_OPTIONS = SerializationOptions(
    explicit_blocks=False, strip_string_quotes=True, preserve_heredocs=False, with_comments=False
)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that the configuration declares."""

    name: str
    type: TerraformType
    description: str
    default: Any
    required: bool
    sensitive: bool
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Configuration:
    variables: dict[str, Variable]

    def as_json(self) -> list[dict[str, Any]]:
        """The form in which it is kept: types as they are written."""
        return [{**asdict(one), "type": str(one.type)} for one in self.variables.values()]

    @classmethod
    def from_json(cls, kept: list[dict[str, Any]]) -> Configuration:
        return cls({one["name"]: Variable(**{**one, "type": parse_type(one["type"])}) for one in kept})


def read_configuration(files: Mapping[str, str]) -> Configuration:
    """Parse the files, or refuse them with the file, the line and the remedy."""
    return _read(tuple(sorted(files.items())))


def read_variables(files: Mapping[str, str]) -> Configuration:
    """The variables alone, of files that are known to be good: what declares none is not parsed."""
    declaring = {
        path: text for path, text in files.items() if _is_root(path) and DECLARATION.search(text) is not None
    }
    return Configuration(_variables({path: (text, _parse(path, text)) for path, text in declaring.items()}))


@lru_cache(maxsize=256)
def _read(files: tuple[tuple[str, str], ...]) -> Configuration:
    check_paths(dict(files))
    root = {path: text for path, text in files if _is_root(path)}
    if sum(len(text.encode()) for text in root.values()) > MAX_PARSED_BYTES:
        raise BadInput(
            f"The .tf files at the top have more than {MAX_PARSED_BYTES // 1024} KiB. Make modules of parts.",
            field="source.files",
        )
    if not root:
        raise BadInput(
            "There is no Terraform configuration at the top: add a file that ends in .tf.",
            field="source.files",
        )
    parsed = {path: (text, _parse(path, text)) for path, text in root.items()}
    _require_no_cycle(parsed)
    return Configuration(_variables(parsed))


def check_paths(files: Mapping[str, str]) -> None:
    """Refuse names that could leave the work directory, and more than a configuration can need."""
    if len(files) > MAX_FILES:
        raise BadInput(f"There are {len(files)} files; at most {MAX_FILES} are taken.", field="source.files")
    if sum(len(text.encode()) for text in files.values()) > MAX_TOTAL_BYTES:
        raise BadInput(
            f"The files are larger than {MAX_TOTAL_BYTES // 1024 // 1024} MiB together. Leave some out.",
            field="source.files",
        )
    for path in files:
        if not _is_path(path):
            raise BadInput(
                f"{path[:MAX_PATH_CHARS]!r} is not a file name inside the configuration. Rename it.",
                field="source.files",
                file=path[:MAX_PATH_CHARS],
            )


def check_variables(
    configuration: Configuration,
    *,
    variables: Mapping[str, Any],
    secret_names: frozenset[str] = frozenset(),
    may_lack_values: bool = False,
) -> None:
    """Refuse values that the configuration does not declare, lacks, or types otherwise."""
    declared = configuration.variables
    for name in sorted({*variables, *secret_names} - declared.keys()):
        raise BadInput(
            f"The configuration has no variable {name!r}. Remove it, or declare it in a .tf file.",
            field=f"variables.{name}",
        )
    for name, variable in declared.items():
        given = name in variables or name in secret_names
        if variable.required and not given and not may_lack_values:
            raise BadInput(
                f"Variable {name!r} ({variable.type}) has no value and no default. Give it a value.",
                field=f"variables.{name}",
                file=variable.file,
                line=variable.line,
            )
        if wrong := mismatch(variable.type, variables.get(name), name):
            raise BadInput(
                f"Variable {wrong}. It is declared in {variable.file}, line {variable.line}.",
                field=f"variables.{name}",
                file=variable.file,
                line=variable.line,
            )


def _is_root(path: str) -> bool:
    """Terraform reads the files at the top; folders are modules, which are read when they are called."""
    return "/" not in path and path.endswith((".tf", ".tf.json"))


def _is_path(path: str) -> bool:
    parts = PurePosixPath(path).parts
    strange = any(ord(char) < 32 or char in "\\\x7f" for char in path)
    normal = "/".join(parts) == path and ".." not in parts and not path.startswith("/")
    return bool(parts) and normal and not strange and len(path) <= MAX_PATH_CHARS


@lru_cache(maxsize=1_024)
def _parse(path: str, text: str) -> dict[str, Any]:
    try:
        document = json.loads(text) if path.endswith(".json") else _parse_hcl(text)
    except UnexpectedInput as error:
        raise _not_hcl(path, text, error) from error
    except RecursionError as error:
        raise BadInput(
            f"{path}: expressions are nested too deeply to be read. Split them up.",
            field="source.files",
            file=path,
            line=1,
        ) from error
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise BadInput(
            f"{path}, line {line}: this is not valid: {error}. Correct it.",
            field="source.files",
            file=path,
            line=line,
            snippet=_line(text, line),
        ) from error
    if not isinstance(document, dict):
        raise BadInput(f"{path}: expected an object at the top.", field="source.files", file=path, line=1)
    return document


def _parse_hcl(text: str) -> Any:
    return hcl2.loads(text.removeprefix("\ufeff") + "\n", serialization_options=_OPTIONS)


def _not_hcl(path: str, text: str, error: UnexpectedInput) -> BadInput:
    last = len(text.splitlines())
    line = min(max(1, error.line), max(1, last))
    if getattr(getattr(error, "token", None), "type", "") == "$END":
        remedy = "something that was opened before is not closed: look for a missing } or quote"
    else:
        remedy = f"look at column {error.column}"
    return BadInput(
        f"{path}, line {line}: this is not valid HCL; {remedy}.",
        field="source.files",
        file=path,
        line=line,
        snippet=_line(text, line),
    )


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1][:200] if 0 < number <= len(lines) else ""


def _line_of(text: str, pattern: str) -> int:
    """Where a block begins; the parser's tree does not say."""
    found = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, found.end()) + 1 if found else 1


def _listed(blocks: Any) -> list[dict[str, Any]]:
    """HCL gives a list of blocks, JSON one object of all of them."""
    return [block for block in (blocks if isinstance(blocks, list) else [blocks]) if isinstance(block, dict)]


def _labelled(blocks: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for block in _listed(blocks):
        for name, body in block.items():
            yield name.strip('"'), body if isinstance(body, dict) else {}


def _variables(parsed: Mapping[str, tuple[str, dict[str, Any]]]) -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    for path, (text, document) in parsed.items():
        for name, block in _labelled(document.get("variable", [])):
            variable = _variable(name, block, path, text)
            if first := found.get(name):
                raise BadInput(
                    f"{path}, line {variable.line}: variable {name!r} is declared in {first.file} already. "
                    "Remove one of them.",
                    field="source.files",
                    file=path,
                    line=variable.line,
                )
            found[name] = variable
    return found


def _variable(name: str, block: dict[str, Any], path: str, text: str) -> Variable:
    line = _line_of(text, rf'^\s*(?:variable\s+"?{re.escape(name)}"?\s*\{{|"{re.escape(name)}"\s*:)')
    try:
        kind = parse_type(_bare(block["type"])) if "type" in block else ANY
    except NotAType as error:
        raise BadInput(
            f"{path}, line {line}: variable {name!r}: {error}. Write a Terraform type such as list(string).",
            field="source.files",
            file=path,
            line=line,
        ) from error
    return Variable(
        name=name,
        type=kind,
        description=str(block.get("description") or "").strip(),
        default=block.get("default"),
        required="default" not in block,
        sensitive=block.get("sensitive") in (True, "true"),
        file=path,
        line=line,
    )


def _bare(expression: Any) -> str:
    return str(expression).removeprefix("${").removesuffix("}")


def _require_no_cycle(parsed: Mapping[str, tuple[str, dict[str, Any]]]) -> None:
    graph: dict[str, set[str]] = {}
    places: dict[str, tuple[str, int]] = {}
    for path, (text, document) in parsed.items():
        for name, body in _nodes(document):
            references = _references(body)
            # A resource may refer to itself in a provisioner; a local value never may.
            graph.setdefault(name, set()).update(
                references if name.startswith("local.") else references - {name}
            )
            places[name] = path, _line_of(text, _declared_as(name))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise _in_a_circle(list(reversed(error.args[1])), places) from error


def _in_a_circle(names: list[str], places: Mapping[str, tuple[str, int]]) -> BadInput:
    file, line = places[names[0]]
    return BadInput(
        f"{file}, line {line}: these depend on each other in a circle: {' → '.join(names)}. "
        "Take one of the references out.",
        field="source.files",
        file=file,
        line=line,
    )


def _declared_as(name: str) -> str:
    parts = [re.escape(part) for part in name.split(".")]
    if parts[0] == "local":
        return rf'^(?:\s*locals\s*\{{)?\s*"?{parts[1]}"?\s*[=:]'
    label = r'"?\s+"?'.join(parts[-2:])
    return rf'^\s*(?:resource|data|module)\s+"?{label}"?\s*\{{'


def _nodes(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Everything that can be referred to, with the expressions that it is made of."""
    for block in _listed(document.get("locals", [])):
        yield from ((f"local.{name}", value) for name, value in block.items())
    for name, _ in _labelled(document.get("module", [])):
        # A module's inputs and outputs are separate in Terraform's graph: a circle through it may be none.
        yield f"module.{name}", {}
    for prefix, kind in (("", "resource"), ("data.", "data")):
        for type_name, named in _labelled(document.get(kind, [])):
            yield from ((f"{prefix}{type_name}.{name.strip(chr(34))}", body) for name, body in named.items())


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set().union(*(_references(item) for item in [*value.values(), *value.keys()]), set())
    if isinstance(value, list):
        return set().union(*(_references(item) for item in value), set())
    if not isinstance(value, str):
        return set()
    found = set()
    for match in REFERENCE.finditer(value):
        kind, name, data_type, data_name, resource_type, resource_name = match.groups()
        if kind in ("local", "module"):
            found.add(f"{kind}.{name}")
        elif data_type:
            found.add(f"data.{data_type}.{data_name}")
        elif resource_type:
            found.add(f"{resource_type}.{resource_name}")
    return found
