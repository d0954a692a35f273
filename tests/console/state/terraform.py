"""Real Terraform in a directory of its own, as a person runs it on a laptop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.terraform.binary import find_terraform
from tests.waiting import wait_until

PATIENCE_SECONDS = 60

HTTP_BACKEND = 'terraform {\n  backend "http" {}\n}\n'
TWO_RESOURCES = """
variable "size" { default = "small" }
resource "terraform_data" "network" { input = var.size }
resource "terraform_data" "server" {
  count = 2
  input = "${terraform_data.network.output}-${count.index}"
}
resource "terraform_data" "key" { input = sensitive("hunter2 & friends") }
output "servers" { value = terraform_data.server[*].output }
output "key" {
  value     = terraform_data.key.output
  sensitive = true
}
"""
#: An apply that is in the middle until the file `go` is there.
WAITING = """
resource "terraform_data" "before" {}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.before]
  provisioner "local-exec" {
    command = "touch begun; while [ ! -e go ]; do sleep 0.05; done"
  }
}
"""


@dataclass(frozen=True)
class Applying:
    """An apply that runs."""

    process: subprocess.Popen[bytes]
    printed_to: Path

    @property
    def printed(self) -> str:
        return self.printed_to.read_text()

    def wait_for(self, words: str) -> None:
        wait_until(lambda: words in self.printed, seconds=30, what=f"{words!r} of Terraform")

    def end(self) -> int:
        return self.process.wait(PATIENCE_SECONDS)

    def kill(self) -> None:
        """Terraform and its provisioner, without a chance to say goodbye."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.end()


@dataclass
class Terraform:
    """One working directory."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TF_CLI_CONFIG_FILE": os.devnull,
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "CHECKPOINT_DISABLE": "1",
            "NO_PROXY": "127.0.0.1,localhost",
            **self.environ,
        }

    def write(self, **files: str) -> Terraform:
        for name, text in files.items():
            (self.folder / f"{name}.tf").write_text(text)
        return self

    def try_to(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [find_terraform().path, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def run(self, *arguments: str) -> str:
        answer = self.try_to(*arguments)
        assert answer.returncode == 0, f"{arguments}: {answer.stdout}\n{answer.stderr}"
        return answer.stdout

    def init(self) -> Terraform:
        self.run("init", "-no-color")
        return self

    def apply(self, *arguments: str) -> str:
        return self.run("apply", "-no-color", "-auto-approve", *arguments)

    def pull(self) -> dict[str, Any]:
        return json.loads(self.run("state", "pull"))  # type: ignore[no-any-return]

    @contextmanager
    def applying(self, *arguments: str) -> Iterator[Applying]:
        """An apply in the background; it is let go, or killed, in the end."""
        output = self.folder / "output.txt"
        with output.open("wb") as written:
            process = subprocess.Popen(
                [find_terraform().path, "apply", "-no-color", "-auto-approve", *arguments],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
                start_new_session=True,
            )
        try:
            yield Applying(process, output)
        finally:
            self.let_go()
            process.wait(PATIENCE_SECONDS)

    @contextmanager
    def in_the_middle(self, *arguments: str) -> Iterator[Applying]:
        """An apply of WAITING that has begun."""
        with self.applying(*arguments) as applying:
            wait_until(
                lambda: self._has_begun() or applying.process.poll() is not None,
                seconds=PATIENCE_SECONDS,
                what="the apply having begun",
            )
            assert self._has_begun(), applying.printed
            yield applying

    def _has_begun(self) -> bool:
        return (self.folder / "begun").exists()

    def let_go(self) -> None:
        (self.folder / "go").touch()


def against(address: str, *, user: str, password: str) -> dict[str, str]:
    """The environment for the console's backend, with the unusual verbs that Terraform uses by default."""
    return {
        "TF_HTTP_ADDRESS": address,
        "TF_HTTP_LOCK_ADDRESS": address,
        "TF_HTTP_UNLOCK_ADDRESS": address,
        "TF_HTTP_USERNAME": user,
        "TF_HTTP_PASSWORD": password,
        "TF_HTTP_RETRY_MAX": "0",
    }
