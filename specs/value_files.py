"""Values in the configuration's own .tfvars files, which Terraform loads automatically."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: Loaded first, in this order; then all *.auto.tfvars by name. Later ones win.
FIRST = ("terraform.tfvars", "terraform.tfvars.json")
AUTO = (".auto.tfvars", ".auto.tfvars.json")


@dataclass(frozen=True, slots=True)
class FileValue:
    """One assignment, and the file that it is in."""

    value: Any
    file: str


def is_value_file(path: str) -> bool:
    return path in FIRST or ("/" not in path and path.endswith(AUTO))


def values_in(files: Mapping[str, str], parse: Callable[[str, str], dict[str, Any]]) -> dict[str, FileValue]:
    """Return the value of each name, with Terraform's precedence."""
    return {
        name.strip('"'): FileValue(value, path)
        for path in _in_order(files)
        for name, value in parse(path, files[path]).items()
    }


def _in_order(files: Mapping[str, str]) -> Iterator[str]:
    yield from (path for path in FIRST if path in files)
    yield from sorted(path for path in files if is_value_file(path) and path not in FIRST)
