"""State of 1 and 20 MB, read and written: by a bare client and by Terraform, ours against a plain file."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from bench import plain_file_backend
from bench.console_process import running_console
from bench.report import Figure
from bench.rounds import Contestant, Rounds, take_turns
from bench.site import Site
from bench.tenant import Tenant, new_tenant
from console.accounts.services import create_api_token
from runner.terraform.binary import find_terraform

MEGABYTE = 1_000_000
SIZES = (1, 20)
TIMEOUT_SECONDS = 120.0
LINEAGE = b"6f1c2a52-0f5e-4a39-9d0c-2f1f1c6d8f11"


def measure(site: Site, *, quick: bool) -> list[Figure]:
    tenant = new_tenant("state")
    token = create_api_token(user=tenant.person, organization=tenant.organization, name="bench")[1]
    figures: list[Figure] = []
    with running_console(site) as console, _plain_file(site.folder) as plain:
        for size in SIZES:
            console_backend = _console_backend(f"http://{console.host}:{console.port}", tenant, token)
            figures += _by_a_client(size, console_backend, Backend(plain), rounds=2 if quick else 9)
            console_backend = _console_backend(f"http://{console.host}:{console.port}", tenant, token)
            figures += _by_terraform(site, size, console_backend, rounds=1 if quick else 3)
    return figures


def _console_backend(console: str, tenant: Tenant, token: str) -> Backend:
    spec = tenant.new_spec()
    return Backend(f"{console}/api/state/{spec.pk}", token)


@dataclass
class Backend:
    """One http backend; ours wants a login and a lock."""

    address: str
    token: str = ""
    serial: int = 0

    def __post_init__(self) -> None:
        login = ("bench", self.token) if self.token else None
        self._http = httpx.Client(timeout=TIMEOUT_SECONDS, auth=login, trust_env=False)
        self._lock = str(uuid4())

    def lock(self) -> None:
        if self.token:
            self._expect(self._http.request("LOCK", self.address, json={"ID": self._lock}))

    def write(self, padding: bytes) -> None:
        self.serial += 1
        body = _with_serial(self.serial, padding)
        self._expect(self._http.post(f"{self.address}?ID={self._lock}", content=body))

    def read(self) -> None:
        self._expect(self._http.get(self.address))

    def unlock(self) -> None:
        if self.token:
            self._expect(self._http.request("UNLOCK", self.address, json={"ID": self._lock}))

    @staticmethod
    def _expect(answer: httpx.Response) -> None:
        assert answer.is_success, f"{answer.status_code}: {answer.text[:300]}"


def _by_a_client(size: int, console_backend: Backend, plain: Backend, *, rounds: int) -> list[Figure]:
    padding = _rest_of_a_state(size * MEGABYTE)
    console_backend.lock()
    writes = take_turns(
        _contestants({"ours": lambda: console_backend.write(padding), "file": lambda: plain.write(padding)}),
        rounds=rounds,
    )
    reads = take_turns(_contestants({"ours": console_backend.read, "file": plain.read}), rounds=rounds)
    console_backend.unlock()
    return [*_figures(f"write {size} MB", writes), *_figures(f"read {size} MB", reads)]


def _by_terraform(site: Site, size: int, console_backend: Backend, *, rounds: int) -> list[Figure]:
    """`state push` and `state pull`: what a person waits for, with Terraform's own share in it."""
    padding = _rest_of_a_state(size * MEGABYTE)
    with_console = Laptop(site.folder / f"http-{size}", _http_environment(console_backend))
    with_file = Laptop(site.folder / f"local-{size}", {})
    pushes = take_turns(
        _contestants({"ours": lambda: with_console.push(padding), "file": lambda: with_file.push(padding)}),
        rounds=rounds,
    )
    pulls = take_turns(_contestants({"ours": with_console.pull, "file": with_file.pull}), rounds=rounds)
    return [
        *_figures(f"terraform state push, {size} MB", pushes, at_most=2.0),
        *_figures(f"terraform state pull, {size} MB", pulls, at_most=2.0),
    ]


def _figures(name: str, rounds: Rounds, *, at_most: float | None = None) -> list[Figure]:
    return [
        Figure(f"{name}, ours", 1_000 * rounds.median("ours"), "ms"),
        Figure(f"{name}, a plain file", 1_000 * rounds.median("file"), "ms"),
        Figure("  ours takes", rounds.ratio("ours", "file"), "×", at_most=at_most),
    ]


def _contestants(works: dict[str, Callable[[], object]]) -> dict[str, Contestant]:
    return {name: _stopwatch(work) for name, work in works.items()}


def _stopwatch(work: Callable[[], object]) -> Contestant:
    def seconds() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return seconds


@dataclass
class Laptop:
    """Terraform in a directory of its own."""

    folder: Path
    environ: dict[str, str]
    serial: int = 0
    lineage: bytes = LINEAGE

    def __post_init__(self) -> None:
        self.folder.mkdir()
        if self.environ:
            (self.folder / "backend.tf").write_text('terraform {\n  backend "http" {}\n}\n')
        self._run("init")
        # Into an empty backend Terraform pushes with a lineage of its own making.
        self.push(_rest_of_a_state(0))
        self.lineage = str(json.loads(self.pull())["lineage"]).encode()

    def push(self, padding: bytes) -> None:
        self.serial += 1_000  # Terraform counts on by itself, too
        body = _with_serial(self.serial, padding.replace(LINEAGE, self.lineage, 1))
        (self.folder / "pushed.json").write_bytes(body)
        self._run("state", "push", "pushed.json")

    def pull(self) -> bytes:
        return self._run("state", "pull")

    def _run(self, *arguments: str) -> bytes:
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TF_CLI_CONFIG_FILE": os.devnull}
        answer = subprocess.run(
            [find_terraform().path, *arguments],
            cwd=self.folder,
            env=environ | {"CHECKPOINT_DISABLE": "1", "NO_PROXY": "127.0.0.1"} | self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr.decode()
        return answer.stdout


def _http_environment(backend: Backend) -> dict[str, str]:
    return {
        "TF_HTTP_ADDRESS": backend.address,
        "TF_HTTP_LOCK_ADDRESS": backend.address,
        "TF_HTTP_UNLOCK_ADDRESS": backend.address,
        "TF_HTTP_USERNAME": "bench",
        "TF_HTTP_PASSWORD": backend.token,
    }


@contextlib.contextmanager
def _plain_file(folder: Path) -> Iterator[str]:
    command = [sys.executable, plain_file_backend.__file__, str(folder / "plain.tfstate")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        try:
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()


def _rest_of_a_state(size: int) -> bytes:
    """Everything of a state but its serial: many resources whose attributes differ, as real ones do."""
    resource_bytes = len(json.dumps(_resource(0)))
    resources = json.dumps([_resource(number) for number in range(size // resource_bytes)])
    return (
        f'"version":4,"terraform_version":"1.11.4","lineage":"{LINEAGE.decode()}","outputs":{{}},'
        f'"resources":{resources},"check_results":null}}'
    ).encode()


def _with_serial(serial: int, padding: bytes) -> bytes:
    return b'{"serial":%d,' % serial + padding


def _resource(number: int) -> dict[str, Any]:
    values = {f"attribute_{index}": f"value {index} {uuid4()}" for index in range(12)}
    return {
        "mode": "managed",
        "type": "terraform_data",
        "name": f"n{number}",
        "provider": 'provider["terraform.io/builtin/terraform"]',
        "instances": [
            {
                "schema_version": 0,
                "attributes": {"id": str(uuid4()), "input": {"value": values, "type": _object(values)}},
                "sensitive_attributes": [],
            }
        ],
    }


def _object(values: dict[str, str]) -> list[Any]:
    return ["object", dict.fromkeys(values, "string")]
