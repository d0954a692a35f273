"""`slipway state migrate`: takes a state over from where it was kept until now, and checks that it fits.

The state is read with Terraform itself, so that every backend and every way to sign in to it works as it did;
it is written through the console's own backend, under its lock. Where it came from is left as it is.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from runner.terraform_binary import TerraformMissing, find_terraform

SOURCES = ("s3", "gcs", "azurerm", "pg", "local")
TOKEN = "SLIPWAY_TOKEN"  # noqa: S105  the variable's name
POLL_SECONDS = 1.0
FINAL = ("SUCCESS", "FAILED", "CANCELLED")


class MigrationRefused(Exception):
    """The state cannot be taken over; the message says why and what to do."""


def add_state(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    state = commands.add_parser("state", help="take a state over from another backend")
    deeds = state.add_subparsers(metavar="command", required=True)
    migrate = deeds.add_parser("migrate", help="copy a state into the console and check that a plan is empty")
    migrate.add_argument("--console", default=os.environ.get("SLIPWAY_CONSOLE"), help="the console's address")
    migrate.add_argument("--spec", required=True, help="which Spec takes it over: organization/spec")
    migrate.add_argument("--from", dest="source", required=True, choices=SOURCES, help="where it is now")
    migrate.add_argument("--file", type=Path, help="the file, with --from local")
    migrate.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the other backend"
    )
    migrate.add_argument(
        "--workspace", default="default", help="Terraform's word for one of several states there"
    )
    migrate.add_argument("--no-plan", action="store_true", help="do not check with a plan afterwards")
    migrate.add_argument(
        "--timeout", type=float, default=3600, help="how long to wait for the plan, in seconds"
    )
    migrate.set_defaults(command=_migrate)


def _migrate(options: argparse.Namespace) -> int:
    try:
        with _console(options) as console:
            return migrate(options, console)
    except (MigrationRefused, TerraformMissing, httpx.HTTPError) as refusal:
        sys.stderr.write(f"slipway: {refusal}\n")
        return 2


def migrate(options: argparse.Namespace, console: Console) -> int:
    """Zero when the state is there and a plan of it is empty; 1 when the plan is not empty."""
    target = console.target(options.spec)
    body = read_local(options.file) if options.source == "local" else read_with_terraform(options)
    document = checked(body)
    _say(
        f"Read serial {document['serial']}, lineage {document['lineage']}, "
        f"{len(document.get('resources') or [])} resources ({len(body)} bytes)."
    )
    console.store(target, body)
    _say(f"{options.spec} has taken it over. Where it came from is left as it is: use it there no longer.")
    return 0 if options.no_plan else check_plan(console, target, timeout=options.timeout)


def check_plan(console: Console, target: dict[str, Any], *, timeout: float) -> int:
    """A state that fits its Spec leaves nothing to do."""
    job = console.plan(target, timeout=timeout)
    if job["status"] != "SUCCESS":
        raise MigrationRefused(
            f"The state is there, but it could not be checked: the plan ended {job['status']}: "
            f"{job.get('error_message')}. Plan again before you apply anything."
        )
    told = console.changes_of(job)
    if not told:
        _say("A plan of it is empty: the state and the Spec say the same.")
        return 0
    _say(
        f"A plan of it is NOT empty: {told}. The Spec does not describe what is there. Nothing was changed; "
        "read the plan, and correct the Spec before you apply anything."
    )
    return 1


def read_local(file: Path | None) -> bytes:
    if file is None:
        raise MigrationRefused("--from local needs --file.")
    try:
        return file.read_bytes()
    except OSError as error:
        raise MigrationRefused(f"{file} cannot be read: {error.strerror}.") from error


def read_with_terraform(options: argparse.Namespace) -> bytes:
    """`terraform state pull` from the other backend, with whatever signs in there in this shell."""
    settings = dict(_pair(text) for text in options.set)
    with tempfile.TemporaryDirectory(prefix="slipway-migrate-") as folder:
        backend = {"terraform": {"backend": {options.source: settings}}}
        (Path(folder) / "backend.tf.json").write_text(json.dumps(backend))
        environ = os.environ | {"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "TF_WORKSPACE": options.workspace}
        _terraform(["init", "-no-color"], folder, environ)
        return _terraform(["state", "pull"], folder, environ)


def checked(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body or b"null")
    except (ValueError, RecursionError) as error:
        raise MigrationRefused(f"What is there is not Terraform state: {error}.") from error
    if not isinstance(document, dict) or "serial" not in document or "lineage" not in document:
        raise MigrationRefused("There is no state there: look at the backend's settings once more.")
    return document


def _terraform(arguments: list[str], folder: str, environ: dict[str, str]) -> bytes:
    answer = subprocess.run(
        [find_terraform().path, *arguments],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if answer.returncode != 0:
        said = (answer.stderr or answer.stdout).decode("utf-8", "replace").strip()
        raise MigrationRefused(f"Terraform cannot read it there: {' '.join(said.split())}")
    return answer.stdout


def _pair(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise MigrationRefused(f"--set {text!r}: expected NAME=VALUE.")
    return name, {"true": True, "false": False}.get(value, value)


@dataclass(frozen=True)
class Console:
    """What a migration asks of the console, as the person whose token it has."""

    http: httpx.Client
    login: tuple[str, str]

    def target(self, name: str) -> dict[str, Any]:
        organization, separator, spec = name.partition("/")
        if not separator:
            raise MigrationRefused(f"--spec {name!r}: expected organization/spec.")
        target = self._json("GET", f"/api/organizations/{organization}/specs/{spec}/state")
        if target["backend"]["kind"] != "console":
            raise MigrationRefused(
                f"{name} keeps its state in {target['backend']['kind']}. Choose this console for it first."
            )
        return target

    def store(self, target: dict[str, Any], body: bytes) -> None:
        """Lock, write, unlock: as Terraform does it."""
        info = {"ID": str(uuid4()), "Operation": "migrate", "Who": "slipway state migrate"}
        self._state("LOCK", target["address"], json.dumps(info).encode())
        try:
            self._state("POST", f"{target['address']}?ID={info['ID']}", body)
        finally:
            self._state("UNLOCK", target["address"], json.dumps(info).encode())

    def plan(self, target: dict[str, Any], *, timeout: float) -> dict[str, Any]:
        job = self._json("POST", "/api/jobs", json={"spec": target["spec"], "type": "PLAN"})
        _say(f"Checking with PLAN #{job['number']} …")
        deadline = time.monotonic() + timeout
        while job["status"] not in FINAL:
            if time.monotonic() > deadline:
                raise MigrationRefused(
                    f"The state is there; PLAN #{job['number']} that checks it still waits."
                )
            time.sleep(POLL_SECONDS)
            job = self._json("GET", f"/api/jobs/{job['id']}")
        return job

    def changes_of(self, job: dict[str, Any]) -> str:
        """What a plan would change, in words; empty for an empty plan."""
        result = job.get("result") or {}
        told = [f"{count} to {name}" for name, count in (result.get("summary") or {}).items() if count]
        outputs = self._json("GET", f"/api/plans/{result['plan_id']}")["output_changes"]
        if outputs:
            told.append(f"{len(outputs)} of the outputs to change")
        return ", ".join(told)

    def _json(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        answer = self.http.request(
            method, path, headers={"Authorization": f"Bearer {self.login[1]}"}, **options
        )
        _require_success(answer)
        found: dict[str, Any] = answer.json()
        return found

    def _state(self, method: str, address: str, body: bytes) -> None:
        _require_success(self.http.request(method, address, content=body, auth=self.login))


@contextlib.contextmanager
def _console(options: argparse.Namespace) -> Iterator[Console]:
    if not options.console:
        raise MigrationRefused("No console given: pass --console URL or set SLIPWAY_CONSOLE.")
    token = os.environ.get(TOKEN)
    if not token:
        raise MigrationRefused(f"Set {TOKEN} to an API token of an operator of the organization.")
    with httpx.Client(base_url=options.console, timeout=120) as http:
        yield Console(http, ("migrate", token))


def _require_success(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    try:
        said = answer.json()
    except ValueError:
        said = {}
    if answer.status_code == httpx.codes.LOCKED:
        raise MigrationRefused(
            f"The state is locked by {said.get('Info') or said.get('Who')}. Try again later."
        )
    raise MigrationRefused(said.get("detail") or f"The console answered {answer.status_code}.")


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201
