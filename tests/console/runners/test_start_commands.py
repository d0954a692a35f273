"""The commands on the page that adds a runner work in this tree."""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from typing import Any

import yaml

from console.runners.start_commands import WAYS, start_commands
from runner.config import DEFAULT_STOP_GRACE_SECONDS
from tests.console_process import ROOT

CONSOLE, TOKEN = "https://slipway.example", "slt_text"
COMMANDS = {way.name: way.command for way in start_commands(console=CONSOLE, token=TOKEN)}
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMAGE = (ROOT / "deploy" / "runner.Dockerfile").read_text()


def test_there_are_four_ways_and_each_names_the_console_and_the_token_once() -> None:
    assert list(COMMANDS) == ["shell", "systemd", "container", "kubernetes"] == list(WAYS)
    for command in COMMANDS.values():
        assert (command.count(CONSOLE), command.count(TOKEN)) == (1, 1)
        shlex.split(command)


def test_what_is_installed_and_started_is_there() -> None:
    for text in (COMMANDS["shell"], COMMANDS["systemd"], IMAGE):
        extras = re.search(r"\[([a-z,]+)\]['\"]", text)
        assert extras
        assert set(extras.group(1).split(",")) <= PROJECT["optional-dependencies"].keys()
        assert "slipway-runner" in PROJECT["scripts"]


def test_the_image_is_built_from_files_that_are_there() -> None:
    assert "--file deploy/runner.Dockerfile" in COMMANDS["container"]
    copied = re.findall(r"^COPY (?!--from)(.+) /\S+$", IMAGE, re.MULTILINE)
    assert copied
    assert [name for names in copied for name in names.split() if not (ROOT / name).exists()] == []


def test_the_volume_is_where_the_runner_of_the_image_keeps_its_credential() -> None:
    (folder,) = re.findall(r"^ENV SLIPWAY_RUNNER_DATA_DIR=(\S+)$", IMAGE, re.MULTILINE)
    assert f"--volume slipway-runner:{folder} " in COMMANDS["container"]
    runs_as = re.search(r"^USER (\d+)$", IMAGE, re.MULTILINE)
    assert runs_as
    made = yaml.safe_load(COMMANDS["kubernetes"].split("<<'EOF'\n")[1].removesuffix("EOF"))
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["volumeMounts"] == [{"name": "data", "mountPath": folder}]
    assert pod["securityContext"] == {"runAsNonRoot": True, "fsGroup": int(runs_as.group(1))}
    assert made["spec"]["volumeClaimTemplates"][0]["metadata"] == {"name": "data"}
    assert made["spec"]["selector"]["matchLabels"] == made["spec"]["template"]["metadata"]["labels"]
    secret = next(one for one in container["env"] if "valueFrom" in one)["valueFrom"]["secretKeyRef"]
    assert f"secret generic {secret['name']} --from-file={secret['key']}=/dev/stdin" in COMMANDS["kubernetes"]


def test_systemd_leaves_the_end_of_terraform_to_the_runner() -> None:
    """Else it kills Terraform together with what would have let it save its state."""
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(COMMANDS["systemd"].split("<<'EOF'\n")[2].split("EOF\n")[0])
    assert unit["Service"]["KillMode"] == "process"
    assert float(unit["Service"]["TimeoutStopSec"]) > DEFAULT_STOP_GRACE_SECONDS


def test_the_token_is_in_no_programs_arguments() -> None:
    """`export`, `printf` and what stands between `<<` and its end are the shell's own."""
    for command in COMMANDS.values():
        (told,) = [line for line in command.splitlines() if TOKEN in line]
        assert re.match(r"export |printf %s \S+ \||SLIPWAY_REGISTRATION_TOKEN=", told)
