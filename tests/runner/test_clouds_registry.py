"""A cloud is one folder and one line in the runner; everything else reaches it through the registry."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.clouds.registry import AMBIENT, CLOUDS

RUNNER = Path(__file__).parents[2] / "runner"
#: The registry itself, and the wire, whose docstring lists the providers for those who write another runner.
MAY_NAME_CLOUDS = ("clouds/registry.py", "protocol.py")


def modules() -> list[Path]:
    folders = [f"clouds/{name}/" for name in (*CLOUDS, AMBIENT)]
    exempt = (*MAY_NAME_CLOUDS, *folders)
    return [file for file in sorted(RUNNER.rglob("*.py")) if not path_of(file).startswith(exempt)]


def path_of(module: Path) -> str:
    return module.relative_to(RUNNER).as_posix()


def words(module: Path) -> Iterator[str]:
    """The names and texts of a module, docstrings included."""
    for node in ast.walk(ast.parse(module.read_text())):
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.ImportFrom(module=str(name)) | ast.alias(name=name):
                yield name


@pytest.mark.parametrize("module", modules(), ids=path_of)
def test_no_other_module_of_the_runner_names_a_cloud(module: Path) -> None:
    names = {name for cloud in CLOUDS.values() for name in (cloud.name, *cloud.probes, *cloud.loggers)}
    cloud = re.compile(rf"(?<![a-z])({'|'.join(names)})(?![a-z])", re.IGNORECASE)
    assert [word for word in words(module) if cloud.search(word)] == []


@pytest.mark.parametrize("name", CLOUDS)
def test_no_cloud_imports_another(name: str) -> None:
    others = [f"runner.clouds.{other}" for other in (*CLOUDS, AMBIENT) if other != name]
    for module in (RUNNER / "clouds" / name).glob("*.py"):
        assert [word for word in words(module) if word.startswith(tuple(others))] == []
