"""Read a Terraform configuration: its variables, and its errors before anything is queued."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath
from typing import Any

from lark.exceptions import UnexpectedInput

from console.errors import BadInput
from runner.protocol import OWN_FILES, TERRAFORMS_FILES, TERRAFORMS_FOLDER
from specs.expressions import references
from specs.hcl import read_hcl
from specs.json_limits import check_storable, is_too_deep
from specs.modules import ModuleReader
from specs.terraform_types import ANY, NotAType, TerraformType, mismatch, parse_type
from specs.value_files import FileValue, is_value_file, values_in

MAX_FILES = 500
MAX_TOTAL_BYTES = 5 * 1024 * 1024
#: The parser reads some tens of kilobytes a second; this keeps a request within reason.
MAX_PARSED_BYTES = 512 * 1024
MAX_PATH_CHARS = 200

# Within a line only, here and below: what may also match line ends takes hours over many empty lines.
#: A file without such a line declares no variable.
DECLARATION = re.compile(r'^[ \t]*(?:variable\b|"variable"[ \t]*:)', re.MULTILINE)
#: Where variables are declared, by name: as a block, or as a key in JSON.
VARIABLE_LINE = re.compile(r'^[ \t]*(?:variable[ \t]+"?([\w-]+)|"([\w-]+)"[ \t]*:)', re.MULTILINE)


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
    #: The .tfvars file that overrides the declared default, if any.
    given_in: str = ""


@dataclass(frozen=True, slots=True)
class Configuration:
    variables: dict[str, Variable]

    def as_json(self) -> list[dict[str, Any]]:
        """Return the stored form: types as Terraform writes them."""
        return [{**asdict(variable), "type": str(variable.type)} for variable in self.variables.values()]

    @classmethod
    def from_json(cls, variables: list[dict[str, Any]]) -> Configuration:
        return cls(
            {
                fields["name"]: Variable(**{**fields, "type": parse_type(fields["type"])})
                for fields in variables
            }
        )


def read_configuration(files: Mapping[str, str]) -> Configuration:
    """Parse the files, or refuse them with the file, the line and the remedy."""
    return _parse_configuration(tuple(sorted(files.items())))


def read_variables(files: Mapping[str, str]) -> Configuration:
    """Read only the variables of files that are known to be valid, parsing the files that declare any."""
    declaring = {
        path: text for path, text in files.items() if _is_root(path) and DECLARATION.search(text) is not None
    }
    return Configuration(
        _variables({path: (text, parse_file(path, text)) for path, text in declaring.items()})
    )


@lru_cache(maxsize=256)
def _parse_configuration(files: tuple[tuple[str, str], ...]) -> Configuration:
    check_paths(dict(files))
    root = {path: text for path, text in files if _is_root(path)}
    value_files = {path: text for path, text in files if is_value_file(path)}
    if sum(len(text.encode()) for text in (*root.values(), *value_files.values())) > MAX_PARSED_BYTES:
        raise BadInput(
            f"The .tf and .tfvars files at the top have more than {MAX_PARSED_BYTES // 1024} KiB. "
            "Split it into modules.",
            field="source.files",
        )
    if not root:
        raise BadInput(
            "There is no Terraform configuration at the top: add a file that ends in .tf.",
            field="source.files",
        )
    parsed = {path: (text, parse_file(path, text)) for path, text in root.items()}
    _require_no_cycle(parsed)
    ModuleReader(dict(files), parse_file, MAX_PARSED_BYTES).check(parsed)
    return Configuration(_override_defaults(_variables(parsed), values_in(value_files, parse_file)))


def check_paths(files: Mapping[str, str]) -> None:
    """Refuse names that could leave the work directory, and more than a configuration can need."""
    if len(files) > MAX_FILES:
        raise BadInput(
            f"There are {len(files)} files; at most {MAX_FILES} are allowed.", field="source.files"
        )
    if sum(len(text.encode()) for text in files.values()) > MAX_TOTAL_BYTES:
        raise BadInput(
            f"The files are larger than {MAX_TOTAL_BYTES // 1024 // 1024} MiB together. Leave some out.",
            field="source.files",
        )
    for path in files:
        if not _is_path(path):
            raise _bad_path(path, "is not a valid path inside the configuration")
        if path in OWN_FILES:
            raise _bad_path(path, "is a file that Slipway writes itself")
        if path.startswith(f"{TERRAFORMS_FOLDER}/") or PurePosixPath(path).name in TERRAFORMS_FILES:
            raise _bad_path(path, "belongs to Terraform itself")
        if clash := next((folder for folder in _folders(path) if folder in files), None):
            raise _bad_path(path, f"lies in {clash!r}, which is a file")


def _bad_path(path: str, why: str) -> BadInput:
    shortened = path[:MAX_PATH_CHARS]
    return BadInput(f"{shortened!r} {why}. Rename it, or leave it out.", field="source.files", file=shortened)


def _folders(path: str) -> Iterator[str]:
    return (str(folder) for folder in PurePosixPath(path).parents)


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
        has_value = name in variables or name in secret_names
        if variable.required and not has_value and not may_lack_values:
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
def parse_file(path: str, text: str) -> dict[str, Any]:
    """Parse a .tf or .tf.json file into a tree with expressions as `${…}`, or refuse it with the line."""
    try:
        document = json.loads(text) if path.endswith(".json") else read_hcl(text)
    except UnexpectedInput as error:
        raise _not_hcl(path, text, error) from error
    except RecursionError as error:
        raise _too_deep(path) from error
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
    if is_too_deep(document):
        raise _too_deep(path)
    _require_text(path, document if is_value_file(path) else document.get("variable"))
    return document


def _require_text(path: str, declared: Any) -> None:
    """Refuse escapes such as \\u0000, which are text in the file but cannot be stored once parsed."""
    try:
        check_storable(declared, field="variable", any_number=True)
    except BadInput as error:
        raise BadInput(f"{path}: {error}", field="source.files", file=path, line=1) from error


def _too_deep(path: str) -> BadInput:
    return BadInput(
        f"{path}: expressions are nested too deeply to be read. Split them up.",
        field="source.files",
        file=path,
        line=1,
    )


def _not_hcl(path: str, text: str, error: UnexpectedInput) -> BadInput:
    last = len(text.splitlines())
    line = min(max(1, error.line), max(1, last))
    if getattr(getattr(error, "token", None), "type", "") == "$END":
        remedy = "a block or text is not closed: look for a missing } or quote"
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
    """Return the line where a block begins, which the parser's tree lacks."""
    match = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, match.end()) + 1 if match else 1


def _variable_lines(text: str) -> dict[str, int]:
    """Return the line of each declaration in one pass: there may be thousands."""
    lines: dict[str, int] = {}
    number, counted = 1, 0
    for match in VARIABLE_LINE.finditer(text):
        number, counted = number + text.count("\n", counted, match.start()), match.start()
        lines.setdefault(match[1] or match[2], number)
    return lines


def as_block_list(blocks: Any) -> list[dict[str, Any]]:
    """Return blocks as a list: HCL has a list of blocks, JSON one object with all of them."""
    return [block for block in (blocks if isinstance(blocks, list) else [blocks]) if isinstance(block, dict)]


def _labelled_blocks(blocks: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for block in as_block_list(blocks):
        for name, body in block.items():
            yield name.strip('"'), body if isinstance(body, dict) else {}


def _variables(parsed: Mapping[str, tuple[str, dict[str, Any]]]) -> dict[str, Variable]:
    variables: dict[str, Variable] = {}
    blocks: dict[str, dict[str, Any]] = {}
    for path in sorted(parsed, key=_is_override):  # stable: otherwise as they come
        text, document = parsed[path]
        lines = _variable_lines(text)
        for name, block in _labelled_blocks(document.get("variable", [])):
            line, first = lines.get(name, 1), variables.get(name)
            if first and not _is_override(path):
                raise _duplicate_declaration(name, path, line, first)
            blocks[name] = {**blocks.get(name, {}), **block}
            place = (first.file, first.line) if first else (path, line)
            variables[name] = _variable(name, blocks[name], *place)
    return variables


def _is_override(path: str) -> bool:
    """Return true for a file that Terraform merges into the declarations of the others."""
    name = path.removesuffix(".json").removesuffix(".tf")
    return name == "override" or name.endswith("_override")


def _duplicate_declaration(name: str, path: str, line: int, first: Variable) -> BadInput:
    return BadInput(
        f"{path}, line {line}: variable {name!r} is declared in {first.file} already. Remove one of them.",
        field="source.files",
        file=path,
        line=line,
    )


def _override_defaults(
    variables: dict[str, Variable], file_values: Mapping[str, FileValue]
) -> dict[str, Variable]:
    """Replace defaults by the values of .tfvars files. Terraform only warns about unknown names."""
    for name in variables.keys() & file_values.keys():
        value, file = file_values[name].value, file_values[name].file
        if _is_literal(value) and (wrong := mismatch(variables[name].type, value, name)):
            raise BadInput(f"{file}: variable {wrong}. Correct it.", field="source.files", file=file)
        variables[name] = replace(variables[name], default=value, required=False, given_in=file)
    return variables


def _variable(name: str, block: dict[str, Any], path: str, line: int) -> Variable:
    try:
        kind = parse_type(_strip_template(block["type"])) if "type" in block else ANY
    except NotAType as error:
        raise BadInput(
            f"{path}, line {line}: variable {name!r}: {error}. Write a Terraform type such as list(string).",
            field="source.files",
            file=path,
            line=line,
        ) from error
    if _is_literal(block.get("default")) and (wrong := mismatch(kind, block.get("default"), name)):
        raise BadInput(
            f"{path}, line {line}: the default of variable {wrong}. Correct the default or the type.",
            field="source.files",
            file=path,
            line=line,
        )
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


def _is_literal(value: Any) -> bool:
    """Return true for a plain value; the parser leaves some numbers, such as 1e3, as expressions."""
    if isinstance(value, dict):
        return all(map(_is_literal, value.values()))
    if isinstance(value, list):
        return all(map(_is_literal, value))
    return not (isinstance(value, str) and "${" in value)


def _strip_template(expression: Any) -> str:
    return str(expression).removeprefix("${").removesuffix("}")


def _require_no_cycle(parsed: Mapping[str, tuple[str, dict[str, Any]]]) -> None:
    graph: dict[str, set[str]] = {}
    places: dict[str, str] = {}
    for path, (_, document) in parsed.items():
        for name, body in _nodes(document):
            names_used = references(body)
            # A resource may refer to itself in a provisioner; a local value never may.
            graph.setdefault(name, set()).update(
                names_used if name.startswith("local.") else names_used - {name}
            )
            places[name] = path
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        names = list(reversed(error.args[1]))
        file = places[names[0]]
        raise _circular_reference(
            names, file, _line_of(parsed[file][0], _declaration_pattern(names[0]))
        ) from error


def _circular_reference(names: list[str], file: str, line: int) -> BadInput:
    return BadInput(
        f"{file}, line {line}: these form a dependency cycle: {' → '.join(names)}. "
        "Remove one of the references.",
        field="source.files",
        file=file,
        line=line,
    )


def _declaration_pattern(name: str) -> str:
    parts = [re.escape(part) for part in name.split(".")]
    if parts[0] == "local":
        return rf'^(?:[ \t]*locals[ \t]*\{{)?[ \t]*"?{parts[1]}"?[ \t]*[=:]'
    label = r'"?[ \t]+"?'.join(parts[-2:])
    return rf'^[ \t]*(?:resource|data|module)[ \t]+"?{label}"?[ \t]*\{{'


def _nodes(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield everything that can be referenced, with its expressions."""
    for block in as_block_list(document.get("locals", [])):
        yield from ((f"local.{name}", value) for name, value in block.items())
    for name, _ in _labelled_blocks(document.get("module", [])):
        # A module's inputs and outputs are separate in Terraform's graph: a circle through it may be none.
        yield f"module.{name}", {}
    for prefix, kind in (("", "resource"), ("data.", "data")):
        for type_name, resources in _labelled_blocks(document.get(kind, [])):
            yield from (
                (f"{prefix}{type_name}.{name.strip(chr(34))}", body) for name, body in resources.items()
            )
