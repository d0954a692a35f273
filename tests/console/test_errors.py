"""The tree of refusals that `console/errors.py` draws is the tree that its classes make."""

from __future__ import annotations

import re
from typing import Any

import pytest

from console import errors
from console.errors import SlipwayError

CLASSES = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, SlipwayError) and value is not SlipwayError
]

#: A name, with the names in parentheses that are below it.
ENTRY = re.compile(r"(?P<name>[A-Z]\w+)(?: \((?P<below>[^)]*)\))?")


def drawn() -> dict[str, str]:
    """Read the parent of each class from the drawing."""
    parents: dict[str, str] = {}
    branch = ""
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"[├└]── (\w+) (\d+)(.*)", line)
        if match:
            branch, rest = match[1], match[3]
            parents[branch] = f"SlipwayError {match[2]}"
        elif line.startswith("│"):
            rest = line[1:]
        else:
            continue
        for entry in ENTRY.finditer(rest):
            parents[entry["name"]] = branch
            for name in (entry["below"] or "").split(" · "):
                if name:
                    parents[name] = entry["name"]
    return parents


def parent_of(error: Any) -> str:
    (base,) = error.__bases__
    return f"SlipwayError {error.status}" if base is SlipwayError else str(base.__name__)


def test_the_drawing_has_every_class_in_its_place_and_no_other() -> None:
    assert drawn() == {error.__name__: parent_of(error) for error in CLASSES}


def test_every_code_names_one_refusal() -> None:
    codes = [error.code for error in CLASSES]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_refusal_has_a_sentence_of_its_own(error: type[SlipwayError]) -> None:
    assert re.fullmatch(r"[A-Z].*\.", str(error()), re.DOTALL)
