"""A cloud is one folder and one line: both are added to a copy of the runner, which then does its jobs."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from runner.protocol import IdentityAccess, JobType
from tests.runner.fake_console import CREDENTIAL, IDENTITY_TOKEN, FakeConsole
from tests.runner.processes import ROOT, RunnerProcess, spawn_runner
from tests.runner.terraforms import terraform_on_path

KEY = "the-key-of-the-machine"
NETWORKS = [
    {"id": "net-1", "name": "main", "region": "north"},
    {"id": "net-2", "name": "old", "region": "south"},
]
DOCUMENTS: dict[str, Any] = {
    "/account": {"name": "acme-production"},
    "/networks": {"networks": NETWORKS},
    "/buckets/state": {"objects": []},
}


class Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        is_known = self.headers["Authorization"] in (f"Bearer {IDENTITY_TOKEN}", f"Bearer {KEY}")
        document = DOCUMENTS.get(self.path) if is_known else None
        content = json.dumps(document or {"error": {"code": 403, "message": "Forbidden"}}).encode()
        self.send_response(200 if document else 403)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def acme() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def runner_with_acme(console: FakeConsole, tmp_path: Path) -> Iterator[RunnerProcess]:
    root = tmp_path / "tree"
    shutil.copytree(ROOT / "runner", root / "runner", ignore=shutil.ignore_patterns("__pycache__"))
    folder = root / "runner/clouds/acme"
    folder.mkdir()
    shutil.copy(ROOT / "tests/runner/another_cloud.py", folder / "__init__.py")
    registry = root / "runner/clouds/registry.py"
    before, names, after = registry.read_text().partition("NAMES = (\n")
    registry.write_text(f'{before}{names}    "acme",\n{after}')
    environ = {"SLIPWAY_TERRAFORM": terraform_on_path(), "SLIPWAY_RUNNER_CREDENTIAL": CREDENTIAL}
    runner = spawn_runner(
        console_url=console.url,
        data_dir=tmp_path / "data",
        log=tmp_path / "runner.log",
        environ={**environ, "ACME_KEY": KEY},
        tree=root,
    )
    yield runner
    runner.end()


def identity(address: str, provider: str = "acme", **settings: Any) -> IdentityAccess:
    settings = {"address": address, **settings}
    return IdentityAccess(identity_id="1", name="production", provider=provider, settings=settings)


@pytest.mark.parametrize(
    ("provider", "settings"), [("acme", {}), ("ambient", {"provider_hint": "acme"})], ids=["acme", "ambient"]
)
def test_a_connection_test(
    provider: str,
    settings: dict[str, Any],
    acme: str,
    console: FakeConsole,
    runner_with_acme: RunnerProcess,
) -> None:
    access = identity(acme, provider, **settings)
    backends = [{"kind": "acme", "settings": {"bucket": name}} for name in ("state", "elsewhere")]
    job = console.enqueue(JobType.CONNECTION_TEST, identity=access, snapshot={"backends": backends})
    report = job.wait_for_end()
    assert report.result is not None, report
    assert report.result["principal"] == {"account": "acme-production"}
    outcomes = [(check["code"], check["outcome"]) for check in report.result["checks"]]
    assert [(code, outcome) for code, outcome in outcomes if code != "session"] == [
        ("credentials", "pass"),
        ("principal", "pass"),
        ("read.vpc", "pass"),
        ("state.acme", "pass"),
        ("state.acme", "fail"),
    ]
    assert report.result["checks"][-1]["detail"] == "Acme answered: Forbidden."
    assert report.error_code == "connection_test_failed"


def test_a_fetch_of_resources(acme: str, console: FakeConsole, runner_with_acme: RunnerProcess) -> None:
    job = console.enqueue(JobType.FETCH_RESOURCES, identity=identity(acme, regions=["north"]))
    report = job.wait_for_end()
    assert (report.status, report.result) == (
        "SUCCESS", {"found": {"vpc": 1}, "failed": [], "failed_count": 0}
    )  # fmt: skip
    (page,) = job.resources
    assert (page.region, page.kind, page.resources) == ("north", "vpc", [{"id": "net-1", "name": "main"}])


def test_terraform_gets_its_credentials_and_region(
    acme: str, console: FakeConsole, runner_with_acme: RunnerProcess
) -> None:
    command = "cat $ACME_TOKEN_FILE; echo in $ACME_REGION"
    main = f"""
        resource "terraform_data" "environment" {{
          provisioner "local-exec" {{ command = "{command}" }}
        }}
    """
    snapshot = {"files": {"main.tf": main}, "region": "north"}
    changes: dict[str, Any] = {"identity": identity(acme), "snapshot": snapshot}
    plan = console.enqueue(JobType.PLAN, **changes)
    assert plan.wait_for_end().status == "SUCCESS", plan.messages
    deploy = console.enqueue(JobType.DEPLOY, **changes, plan=plan.uploaded)
    assert deploy.wait_for_end().status == "SUCCESS", deploy.messages
    assert deploy.says("***in north"), deploy.messages
