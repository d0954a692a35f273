"""`slipway state migrate`: copies a state from another backend into the console, and checks it with a plan.

Terraform itself reads the state, so that every backend and every way to sign in to it works as before. The
console's own backend writes it, under its lock. The original is left unchanged.
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

from runner.terraform.binary import TerraformMissing, find_terraform

SOURCES = ("s3", "gcs", "azurerm", "pg", "local")
TOKEN = "SLIPWAY_TOKEN"  # noqa: S105  the variable's name
POLL_SECONDS = 1.0
FINAL = ("SUCCESS", "FAILED", "CANCELLED")


class MigrationRefused(Exception):
    """A migration that cannot go on; the message says why and what to do."""


def add_state(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    state = commands.add_parser("state", help="import a state from another backend")
    subcommands = state.add_subparsers(metavar="command", required=True)
    migrate = subcommands.add_parser(
        "migrate", help="copy a state into the console, then check that a plan is empty"
    )
    migrate.add_argument("--console", default=os.environ.get("SLIPWAY_CONSOLE"), help="the console's address")
    migrate.add_argument("--spec", required=True, help="the Spec to import into, as organization/spec")
    migrate.add_argument(
        "--from", dest="source", required=True, choices=SOURCES, help="the backend that has the state now"
    )
    migrate.add_argument("--file", type=Path, help="the state file, with --from local")
    migrate.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of that backend; can be repeated",
    )
    migrate.add_argument(
        "--workspace", default="default", help="the Terraform workspace to read (default: %(default)s)"
    )
    migrate.add_argument("--no-plan", action="store_true", help="skip the check by a plan")
    migrate.add_argument(
        "--timeout", type=float, default=3600, help="seconds to wait for the plan (default: %(default)s)"
    )
    migrate.set_defaults(command=_migrate)


def _migrate(options: argparse.Namespace) -> int:
    try:
        with open_console(options) as console:
            return migrate(options, console)
    except (MigrationRefused, TerraformMissing, httpx.HTTPError) as refusal:
        sys.stderr.write(f"slipway: {refusal}\n")
        return 2


def migrate(options: argparse.Namespace, console: Console) -> int:
    """Return 0 when the state is copied and a plan of it is empty, 1 when that plan is not empty."""
    target = console.find_target(options.spec)
    body = read_local(options.file) if options.source == "local" else read_with_terraform(options)
    document = parse_state(body)
    _say(
        f"Read serial {document['serial']}, lineage {document['lineage']}, "
        f"{len(document.get('resources') or [])} resources ({len(body)} bytes)."
    )
    console.store_state(target, body)
    _say(f"Copied the state to {options.spec}. The original is unchanged: do not use it any longer.")
    return 0 if options.no_plan else check_plan(console, target, timeout=options.timeout)


def check_plan(console: Console, target: dict[str, Any], *, timeout: float) -> int:
    """Plan the Spec: a state that fits it leaves nothing to change."""
    job = console.run_plan(target, timeout=timeout)
    if job["status"] != "SUCCESS":
        raise MigrationRefused(
            f"The state was copied, but not checked: the plan ended {job['status']}: "
            f"{job.get('error_message')}. Plan again before you apply anything."
        )
    changes = console.describe_changes(job)
    if not changes:
        _say("The plan is empty: the state matches the Spec.")
        return 0
    _say(
        f"The plan is NOT empty: {changes}. The Spec does not match the state. Nothing was changed: "
        "review the plan, and correct the Spec before you apply anything."
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
    """Pull the state from the other backend, signed in by the environment of this shell."""
    settings = dict(parse_setting(text) for text in options.set)
    with tempfile.TemporaryDirectory(prefix="slipway-migrate-") as folder:
        backend = {"terraform": {"backend": {options.source: settings}}}
        (Path(folder) / "backend.tf.json").write_text(json.dumps(backend))
        environ = os.environ | {"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "TF_WORKSPACE": options.workspace}
        run_terraform(["init", "-no-color"], folder, environ)
        return run_terraform(["state", "pull"], folder, environ)


def parse_state(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body or b"null")
    except (ValueError, RecursionError) as error:
        raise MigrationRefused(f"The source is not Terraform state: {error}.") from error
    if not isinstance(document, dict) or "serial" not in document or "lineage" not in document:
        raise MigrationRefused("The source has no state: check the settings of the backend, or --file.")
    return document


def run_terraform(arguments: list[str], folder: str, environ: dict[str, str]) -> bytes:
    process = subprocess.run(
        [find_terraform().path, *arguments],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if process.returncode != 0:
        output = (process.stderr or process.stdout).decode("utf-8", "replace")
        raise MigrationRefused(f"Terraform cannot read the state: {' '.join(output.split())}")
    return process.stdout


def parse_setting(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise MigrationRefused(f"--set {text!r}: expected NAME=VALUE.")
    return name, {"true": True, "false": False}.get(value, value)


@dataclass(frozen=True)
class Console:
    """The console's API and state backend, signed in by an API token."""

    http: httpx.Client
    login: tuple[str, str]

    def find_target(self, name: str) -> dict[str, Any]:
        organization, separator, spec = name.partition("/")
        if not separator:
            raise MigrationRefused(f"--spec {name!r}: expected organization/spec.")
        target = self._request_json("GET", f"/api/organizations/{organization}/specs/{spec}/state")
        if target["backend"]["kind"] != "console":
            raise MigrationRefused(
                f"{name} stores its state in {target['backend']['kind']}. "
                "Change its backend to this console first."
            )
        return target

    def store_state(self, target: dict[str, Any], body: bytes) -> None:
        """Lock, write and unlock, as Terraform does."""
        lock = {"ID": str(uuid4()), "Operation": "migrate", "Who": "slipway state migrate"}
        self._request_state("LOCK", target["address"], json.dumps(lock).encode())
        try:
            self._request_state("POST", f"{target['address']}?ID={lock['ID']}", body)
        finally:
            self._request_state("UNLOCK", target["address"], json.dumps(lock).encode())

    def run_plan(self, target: dict[str, Any], *, timeout: float) -> dict[str, Any]:
        """Request a plan of the Spec, and wait for the end of its job."""
        job = self._request_json("POST", "/api/jobs", json={"spec": target["spec"], "type": "PLAN"})
        _say(f"Checking with Plan #{job['number']} …")
        deadline = time.monotonic() + timeout
        while job["status"] not in FINAL:
            if time.monotonic() > deadline:
                raise MigrationRefused(
                    f"The state was copied, but not checked: Plan #{job['number']} has not finished "
                    f"within {timeout:g} s."
                )
            time.sleep(POLL_SECONDS)
            job = self._request_json("GET", f"/api/jobs/{job['id']}")
        return job

    def describe_changes(self, job: dict[str, Any]) -> str:
        """Describe what a plan would change; an empty plan has no text."""
        result = job.get("result") or {}
        changes = [f"{count} to {action}" for action, count in (result.get("summary") or {}).items() if count]
        outputs = self._request_json("GET", f"/api/plans/{result['plan_id']}")["output_changes"]
        if outputs:
            changes.append(f"{len(outputs)} of the outputs to change")
        return ", ".join(changes)

    def _request_json(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        response = self.http.request(
            method, path, headers={"Authorization": f"Bearer {self.login[1]}"}, **options
        )
        _require_success(response)
        document: dict[str, Any] = response.json()
        return document

    def _request_state(self, method: str, address: str, body: bytes) -> None:
        _require_success(self.http.request(method, address, content=body, auth=self.login))


@contextlib.contextmanager
def open_console(options: argparse.Namespace) -> Iterator[Console]:
    if not options.console:
        raise MigrationRefused("No console given: pass --console URL or set SLIPWAY_CONSOLE.")
    token = os.environ.get(TOKEN)
    if not token:
        raise MigrationRefused(f"Set {TOKEN} to an API token of an operator of the organization.")
    with httpx.Client(base_url=options.console, timeout=120) as http:
        yield Console(http, ("migrate", token))


def _require_success(response: httpx.Response) -> None:
    if response.is_success:
        return
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    if response.status_code == httpx.codes.LOCKED:
        raise MigrationRefused(
            f"The state is locked by {problem.get('Info') or problem.get('Who')}. Try again later."
        )
    raise MigrationRefused(problem.get("detail") or f"The console answered {response.status_code}.")


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201
