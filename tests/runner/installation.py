"""A real installation for the runner: console and janitor as processes, on the suite's database."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from django.db import connection

from console.errors import JobActive
from console.jobs.log.selectors import log_lines
from console.jobs.models import Job
from console.plans.models import Plan
from console.plans.services import request_deploy
from console.state.models import StateLock
from console.state.services import read_state
from runner.protocol import FINAL_STATUSES, JobType
from specs.models import Revision, SourceKind, Spec
from tests.people import Tenant, fresh
from tests.runner.processes import ROOT
from tests.waiting import wait_until

#: Short, so that losing it is quick: a runner interrupts Terraform 6.2 s after its last heartbeat.
LEASE_SECONDS = 10


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


@dataclass
class Installation:
    """The console's processes. They can be stopped and started again, at the same address."""

    folder: Path
    lease_seconds: int = LEASE_SECONDS
    port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self._console: subprocess.Popen[bytes] | None = None
        self._janitor: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.start_console()
        self._janitor = self._process("janitor", "-m", "django", "janitor")

    def start_console(self) -> None:
        self._console = self._process("console", "-m", "console.local.serve", "--port", str(self.port))
        wait_until(self._answers, what=f"an answer of the console: {self.folder}/console.log")

    def kill_console(self) -> None:
        assert self._console is not None
        self._console.kill()
        self._console.wait()

    def stop(self) -> None:
        for process in (self._janitor, self._console):
            if process is not None:
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=60)

    def _process(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        environ = {
            **os.environ,
            "DATABASE_URL": _database_url(),
            "DJANGO_SETTINGS_MODULE": "console.settings",
            "PYTHONPATH": str(ROOT),
            "SLIPWAY_PUBLIC_URL": self.url,
            "SLIPWAY_LEASE_SECONDS": str(self.lease_seconds),
            "SLIPWAY_INSECURE_COOKIES": "1",
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", *arguments], cwd=ROOT, env=environ, stdout=log, stderr=log
            )

    def _answers(self) -> bool:
        there = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            there.request("GET", "/healthz")
            return there.getresponse().status == 200
        except OSError:
            return False
        finally:
            there.close()


@dataclass(frozen=True)
class Project:
    """A Spec with files of the test's own, as its organization's operator works with it."""

    tenant: Tenant
    spec: Spec

    def plan(self, *, seconds: float = 90) -> Plan:
        """Plan, and wait for it. After a lost apply, the console looks at what is left first."""
        job = wait_until(self._request_plan, seconds=seconds, what="the end of other jobs")
        assert job is not None
        ended = wait_for_end(job, seconds=seconds)
        assert ended.status == "SUCCESS", messages(job)
        return Plan.objects.select_related("spec__organization", "job").get(job=job)

    def _request_plan(self) -> Job | None:
        try:
            return self.tenant.request(spec=self.spec)
        except JobActive:
            return None

    def deploy(self, plan: Plan | None = None) -> Job:
        return request_deploy(plan=plan or self.plan(), requested_by=self.tenant.operator)

    def destroy(self) -> Job:
        return self.tenant.request(JobType.DESTROY, spec=self.spec)

    def state(self) -> dict[str, Any]:
        body = read_state(spec=self.spec)
        document: dict[str, Any] = json.loads(body) if body else {}
        return document

    def resources(self) -> list[str]:
        """The names in the state, tainted ones with a mark."""
        return sorted(
            resource["name"] + (" (tainted)" if instance.get("status") == "tainted" else "")
            for resource in self.state().get("resources", [])
            for instance in resource["instances"]
        )

    def is_locked(self) -> bool:
        return StateLock.objects.filter(spec=self.spec).exists()


def new_project(tenant: Tenant, files: dict[str, str], *, name: str = "project") -> Project:
    spec = Spec.objects.create(
        organization=tenant.organization,
        name=name,
        slug=name,
        source_kind=SourceKind.BLUEPRINT,
        blueprint="demo",
        pool=tenant.pool,
    )
    project = Project(tenant, spec)
    revise(project, files)
    return project


def revise(project: Project, files: dict[str, str]) -> None:
    Revision.objects.create(
        spec=project.spec,
        number=project.spec.revisions.count() + 1,
        author=project.tenant.operator,
        message="test",
        document={
            "format": 1,
            "source": {"kind": "blueprint", "name": "demo"},
            "files": files,
            "variables": {},
            "terraform_version": None,
            "backend": {"kind": "console"},
        },
    )


def messages(job: Job) -> list[str]:
    return [line["message"] for _, line in log_lines(fresh(job), after=0, limit=100_000)]


def wait_for_line(job: Job, text: str, *, seconds: float = 60) -> None:
    wait_until(
        lambda: any(text in message for message in messages(job)),
        seconds=seconds,
        what=f"a line with {text!r}",
    )


def wait_for_end(job: Job, *, seconds: float = 90) -> Job:
    wait_until(lambda: fresh(job).status in FINAL_STATUSES, seconds=seconds, what=f"the end of {job}")
    return fresh(job)


def _database_url() -> str:
    """The suite's server, with the database that this worker's tests have on it."""
    server = urlsplit(os.environ["DATABASE_URL"])
    return server._replace(path="/" + quote(str(connection.settings_dict["NAME"]))).geturl()
