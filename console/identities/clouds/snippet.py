"""One text to copy, and how words are quoted for the language that they stand in."""

import json
import shlex
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Snippet:
    """One text to copy: what it is, what to do with it, and its language."""

    key: str
    title: str
    hint: str
    language: str
    text: str


def script(commands: list[list[str]], *, last: str) -> str:
    return "\n\n".join([*(_command(words) for words in commands), last]) + "\n"


def _command(words: list[str]) -> str:
    """Join the words on one line while that is readable, else with an option on each."""
    quoted = [shlex.quote(word) for word in words]
    line = " ".join(quoted)
    if len(line) <= 90:
        return line
    lines = [""]
    for word, plain in zip(quoted, words, strict=True):
        if plain.startswith("--"):
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return " \\\n  ".join(lines)


def hcl(text: str) -> str:
    """Quote a text for Terraform: as JSON does, and nothing in it is a template."""
    return json.dumps(text, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")


def aligned(values: dict[str, str]) -> str:
    """Return the lines of a map, as `terraform fmt` writes them."""
    width = max(len(hcl(key)) for key in values)
    return "\n".join(f"    {hcl(key):{width}} = {hcl(value)}" for key, value in values.items())


def hcl_value(value: Any, indent: int = 2) -> str:
    pad, end = " " * (indent + 2), " " * indent
    match value:
        case dict():
            lines = [f"{pad}{hcl(key)} = {hcl_value(item, indent + 2)}" for key, item in value.items()]
            return "{\n" + "\n".join(lines) + f"\n{end}}}"
        case list():
            return "[" + ", ".join(hcl_value(item, indent) for item in value) + "]"
    return hcl(str(value))
