"""Slipway works as a wheel and as an editable install, beside python-hcl2 and with the tree out of reach."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.console.up.conftest import RunningUp, wait_for_all_to_end
from tests.console.up.environments import (
    BUILD,
    TERRAFORM,
    Answer,
    Environment,
    build_sdist,
    build_wheel,
    declared_requirements,
    make_environment,
)
from tests.runner.fake_console import CREDENTIAL, FakeConsole
from tests.runner.processes import ROOT
from tests.throwaway_postgres import reachable_directory

PACKAGES = ("console", "runner", "slipway", "specs")
#: Where the wheel has a folder that stands at the top of the tree.
ASSETS = {"templates": "console/assets/templates", "static": "console/assets/static"}

OWNERS = "import json, importlib.metadata as m; print(json.dumps(m.packages_distributions()))"
MODULES = ", ".join(["cli", *PACKAGES])
IMPORT = f"import {MODULES}; print(*(module.__file__ for module in ({MODULES})), sep='\\n')"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder outside of the tree, which the account of the database can pass through."""
    folder = reachable_directory("slipway-")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def elsewhere(folder: Path) -> Path:
    """An empty working directory: nothing can be imported from it."""
    place = folder / "elsewhere"
    place.mkdir()
    return place


@pytest.fixture(scope="module")
def wheel(folder: Path) -> Path:
    return build_wheel(ROOT, folder / "dist")


@pytest.fixture(scope="module")
def install(folder: Path, wheel: Path) -> Environment:
    """An environment with the wheel and the console's dependencies, which pip has checked."""
    environment = make_environment(folder / "installed", *declared_requirements("console"), TERRAFORM)
    environment.install(f"{wheel}[console]")
    return environment


@pytest.fixture(scope="module")
def checkout(folder: Path) -> Path:
    """A checkout named `slipway`, as `git clone` names it and as the package in it is named."""
    checkout = folder / "slipway"
    checkout.mkdir()
    for path in ROOT.iterdir():
        if not path.name.startswith("."):
            (checkout / path.name).symlink_to(path)
    return checkout


def wheel_path(path: Path) -> str:
    top, *below = path.relative_to(ROOT).parts
    return "/".join([ASSETS.get(top, top), *below])


def list_files(wheel: Path) -> set[str]:
    names = zipfile.ZipFile(wheel).namelist()
    return {name for name in names if ".dist-info/" not in name}


def read_levels(answer: Answer) -> dict[str, str]:
    """Read the level of each subject from what `slipway doctor` printed."""
    return {line.split()[1]: line.split()[0] for line in answer.stdout.splitlines()}


def test_the_wheel_has_every_file_of_the_packages_and_nothing_else(wheel: Path) -> None:
    files = (path for top in (*PACKAGES, *ASSETS) for path in (ROOT / top).rglob("*") if path.is_file())
    assert list_files(wheel) == {wheel_path(path) for path in files if "__pycache__" not in path.parts}


def test_a_source_distribution_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    assert list_files(build_wheel(build_sdist(tmp_path), tmp_path)) == list_files(wheel)


def test_no_other_distribution_has_a_package_of_that_name(install: Environment, elsewhere: Path) -> None:
    owners = json.loads(install.run("python", "-c", OWNERS, cwd=elsewhere).stdout)
    assert {name: names for name, names in owners.items() if "slipway" in names} == {
        package: ["slipway"] for package in PACKAGES
    }
    assert owners["cli"] == ["python-hcl2"]


def test_everything_comes_from_the_wheel(install: Environment, elsewhere: Path) -> None:
    answer = install.run("python", "-c", IMPORT, cwd=elsewhere)
    expected = [str(install.packages / name / "__init__.py") for name in ("cli", *PACKAGES)]
    assert answer.stdout.splitlines() == expected, answer.stderr
    assert (install.packages / "cli" / "hcl_to_json.py").exists()


@pytest.mark.parametrize("command", [("slipway",), ("python", "-m", "slipway")], ids=" ".join)
def test_the_command_line_explains_itself(
    command: tuple[str, ...], install: Environment, elsewhere: Path
) -> None:
    answer = install.run(*command, "--help", cwd=elsewhere)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("usage: slipway ")
    assert "reset-password" in answer.stdout


def test_the_doctor_examines_the_machine(install: Environment, elsewhere: Path, folder: Path) -> None:
    answer = install.run("slipway", "doctor", "--port=0", f"--data-dir={folder / 'data'}", cwd=elsewhere)
    examined = read_levels(answer)
    assert answer.stderr == ""
    # No browser: that is for developers. Disk and clock are as this machine has them.
    assert set(examined) == {"python", "database", "data", "disk", "port", "terraform", "clock"}
    assert {examined[subject] for subject in ("python", "database", "data", "port", "terraform")} == {"ok"}
    assert answer.returncode == ("fail" in examined.values())


def test_the_runner_checks_itself(install: Environment, elsewhere: Path, folder: Path) -> None:
    console = FakeConsole()
    console.start()
    try:
        arguments = ("check", "--console", console.url, "--data-dir", str(folder / "runner"))
        answer = install.run(
            "slipway-runner", *arguments, cwd=elsewhere, SLIPWAY_RUNNER_CREDENTIAL=CREDENTIAL
        )
    finally:
        console.close()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert [line.split(":")[0] for line in answer.stdout.splitlines()] == [
        f"ok     {subject}"
        for subject in ("Terraform", "data directory", "console", "TLS", "credential", "clock")
    ]


def test_an_installed_console_has_its_pages_and_their_styles(
    install: Environment, elsewhere: Path, folder: Path
) -> None:
    program = (str(install.program("slipway")),)
    up = RunningUp(folder / "up", program=program, cwd=elsewhere, environment=install.variables())
    try:
        up.wait_for("Ctrl-C stops everything")
        with httpx.Client(base_url=up.url, trust_env=False) as browser:
            page = browser.get("/sign-in")
            sheets = re.findall(r'href="([^"]+\.css)"', page.text)
            assert page.status_code == 200
            assert sheets
            assert {browser.get(sheet).status_code for sheet in sheets} == {200}
    finally:
        everything = up.processes()
        up.end()
        wait_for_all_to_end(everything)


def test_the_runner_alone_needs_nothing_of_the_console(folder: Path, wheel: Path, elsewhere: Path) -> None:
    alone = make_environment(folder / "alone", *declared_requirements())
    alone.install(str(wheel))
    answer = alone.run("slipway-runner", "--version", cwd=elsewhere)
    assert answer.stdout.startswith("slipway-runner "), answer.stderr
    refused = alone.run("slipway", "doctor", cwd=elsewhere)
    assert refused.returncode == 2
    assert refused.stderr == (
        "slipway: psycopg is not installed. Install the console: pip install 'slipway[console]'\n"
    )


def test_an_editable_install_runs_the_checkout(folder: Path, checkout: Path, elsewhere: Path) -> None:
    environment = make_environment(folder / "editable", *declared_requirements("console"), TERRAFORM, *BUILD)
    environment.install("--no-deps", "--editable", str(checkout))

    imported = environment.run("python", "-c", IMPORT, cwd=elsewhere)
    assert imported.stdout.splitlines() == [
        str(environment.packages / "cli" / "__init__.py"),
        *(str(checkout / package / "__init__.py") for package in PACKAGES),
    ], imported.stderr
    helped = environment.run("slipway", "--help", cwd=elsewhere)
    assert helped.returncode == 0, helped.stderr
    # Beside the checkout, its folder's name is the package's: Python must not take the one for the other.
    answer = environment.run("python", "-m", "slipway", "version", cwd=checkout.parent)
    assert answer.stdout.startswith("slipway 0."), answer.stderr


def test_an_update_removes_the_path_file_of_earlier_environments(checkout: Path, elsewhere: Path) -> None:
    environment = make_environment(checkout / ".venv", *declared_requirements("console"), *BUILD)
    stale = environment.packages / "_slipway_first.pth"
    stale.write_text("import sys; sys.path.insert(sys.path.index('/moved/packages'), '/moved/tree')\n")
    (checkout / ".venv" / ".made").touch()
    requirements = (ROOT / "deploy/requirements/dev.txt").read_bytes()
    (checkout / ".venv" / ".stamp-dev").write_text(hashlib.sha256(requirements).hexdigest())

    command = [str(checkout / "deploy" / "environment"), "console"]
    subprocess.run(command, cwd=elsewhere, env=environment.variables(), capture_output=True, check=True)
    assert not stale.exists()
    answer = environment.run("slipway", "version", cwd=elsewhere)
    assert answer.stdout.startswith("slipway 0.")
    assert answer.stderr == ""
