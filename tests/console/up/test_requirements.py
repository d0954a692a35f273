"""The requirement files can be shared, and know every dependency that is declared."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
REQUIREMENTS = sorted((ROOT / "deploy" / "requirements").glob("*.txt"))


@pytest.mark.parametrize("file", REQUIREMENTS, ids=lambda file: file.name)
def test_requirements_are_hashed_and_name_no_place(file: Path) -> None:
    text = file.read_text()
    pinned = re.findall(r"^\S+==", text, flags=re.MULTILINE)
    assert pinned
    assert text.count(" \\\n    --hash=sha256:") >= len(pinned)
    assert "://" not in text


def test_requirements_know_every_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    locked = set(
        re.findall(r"^([a-z0-9.-]+)==", (ROOT / "deploy/requirements/dev.txt").read_text(), re.MULTILINE)
    )
    names = {re.split(r"[\[<>=~! ]", line)[0].lower().replace("_", "-") for line in declared}
    assert names - locked == set(), "run `make lock`"
