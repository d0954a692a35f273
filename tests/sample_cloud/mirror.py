"""Installs the suite's provider where Terraform finds it: a filesystem mirror and a CLI configuration."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def install_provider(folder: Path) -> Path:
    """Returns the CLI configuration that makes Terraform use the mirror in `folder`, and nothing else."""
    home = folder / "provider-home"
    home.mkdir(parents=True)
    target = f"{platform.system()}_{_ARCHITECTURES[platform.machine()]}".lower()
    program = (
        folder
        / "mirror/registry.terraform.io/slipway/suite/1.0.0"
        / target
        / "terraform-provider-suite_v1.0.0"
    )
    program.parent.mkdir(parents=True)
    program.write_text(_launcher(home))
    program.chmod(0o755)
    configuration = folder / "terraform.tfrc"
    configuration.write_text(
        "disable_checkpoint = true\n"
        f'provider_installation {{\n  filesystem_mirror {{\n    path = "{folder}/mirror"\n  }}\n}}\n'
    )
    return configuration


def _launcher(home: Path) -> str:
    """Give it a HOME of its own: the package keeps a certificate there, which takes long to make."""
    return (
        f"#!{sys.executable} -I\n"
        "import os, sys\n"
        f"os.environ['HOME'] = {str(home)!r}\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.sample_cloud.provider import main\n"
        "main()\n"
    )


def servers(cloud_url: str, *names: str, chained: bool = False, **attributes: str) -> dict[str, str]:
    """A configuration with these servers, made side by side or one after the other."""
    blocks = [_head(cloud_url)]
    for index, name in enumerate(names):
        after = f"depends_on = [suite_server.{names[index - 1]}]" if chained and index else ""
        more = "\n  ".join(f"{key} = {value}" for key, value in attributes.items())
        blocks.append(f'resource "suite_server" "{name}" {{\n  name = "{name}"\n  {more}\n  {after}\n}}')
    return {"main.tf": "\n".join(blocks)}


def _head(cloud_url: str) -> str:
    return (
        "terraform {\n  required_providers {\n"
        '    suite = { source = "slipway/suite", version = "1.0.0" }\n  }\n}\n'
        f'provider "suite" {{\n  address = "{cloud_url}"\n}}\n'
    )
