"""The references of local values, read from the files: the JSON of a plan leaves them out."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from console.errors import BadInput
from specs.configuration import MAX_PARSED_BYTES, as_block_list, parse_file
from specs.expressions import code_in

#: A file without such a line has no local values, and is not parsed.
LOCALS = re.compile(r'^\s*(?:locals\b|"locals"\s*:)', re.MULTILINE)
#: As Terraform's JSON writes references, as far as a graph needs them.
REFERENCE = re.compile(
    r"(?<![\w.])(?:"
    r"(?P<plain>(?:var|local)\.[A-Za-z_][\w-]*|data\.[A-Za-z_][\w-]*\.[A-Za-z_][\w-]*)"
    r"|module\.(?P<module>[A-Za-z_][\w-]*)(?:\[[^\[\]]*\])?(?:\.(?P<output>[A-Za-z_][\w-]*))?"
    r"|(?P<resource>[a-z][a-z0-9]*_[\w-]*\.[A-Za-z_][\w-]*))"
)

References = dict[str, list[str]]


def read_locals(files: Mapping[str, str], folder: str = "") -> References:
    """Return the references of each local value of the module in a folder."""
    declaring = {path: text for path, text in files.items() if _is_of(path, folder) and LOCALS.search(text)}
    if sum(len(text) for text in declaring.values()) > MAX_PARSED_BYTES:
        return {}
    references: References = defaultdict(list)
    for path, text in declaring.items():
        for name, value in _values(path, text):
            references[name] += references_in(value)
    return dict(references)


def _is_of(path: str, folder: str) -> bool:
    return path.rpartition("/")[0] == folder and path.endswith((".tf", ".tf.json"))


def _values(path: str, text: str) -> Iterator[tuple[str, Any]]:
    try:
        document = parse_file(path, text)
    except BadInput:
        return  # Terraform has planned it, so it is our parser that cannot read it
    for block in as_block_list(document.get("locals", [])):
        yield from block.items()


def references_in(value: Any) -> list[str]:
    """Return every reference in the expressions of a value; plain text has none."""
    if isinstance(value, dict):
        return [reference for pair in value.items() for part in pair for reference in references_in(part)]
    if isinstance(value, list):
        return [reference for part in value for reference in references_in(part)]
    if not isinstance(value, str):
        return []
    # Texts are left out of the code, so that an index becomes an empty one: `module.m[""].output`.
    return [_format_reference(match) for match in REFERENCE.finditer('""'.join(code_in(value)))]


def _format_reference(match: re.Match[str]) -> str:
    if module := match["module"]:
        return f"module.{module}.{output}" if (output := match["output"]) else f"module.{module}"
    return match["plain"] or match["resource"]
