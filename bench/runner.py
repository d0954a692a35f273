"""The runner beside bare Terraform: what a PLAN costs more, what idling costs, how fast a log passes."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.console_process import running_console
from bench.report import Figure
from bench.site import ROOT, Site
from bench.tenant import Tenant, new_tenant
from console.jobs.models import Job
from console.jobs.services import request_job
from runner.protocol import JobType
from runner.terraform_binary import find_terraform
from specs.models import Revision, Spec

FILES = {
    "main.tf": """
variable "count_of" { default = 20 }
resource "terraform_data" "one" { input = var.count_of }
resource "terraform_data" "many" {
  count = var.count_of
  input = "${terraform_data.one.output}-${count.index}"
}
output "many" { value = terraform_data.many[*].output }
"""
}

#: A Terraform that says a hundred thousand lines: what is measured is the way of a line, not its source.
TALKATIVE = """#!{python} -S
import os, sys
if sys.argv[1:2] != ["plan"]:
    os.execv({terraform!r}, [{terraform!r}, *sys.argv[1:]])
line = ('{{"@level":"info","@message":"terraform_data.many[%d]: Refreshing state... [id=5f1c3a7e-0b7c]",'
        '"@module":"terraform.ui","@timestamp":"2026-01-01T00:00:00.000000Z","type":"refresh_start",'
        '"hook":{{"resource":{{"addr":"terraform_data.many[%d]","module":"","resource_type":"terraform_data"}},'
        '"action":"read"}}}}\\n')
for start in range(0, {lines}, 1000):
    sys.stdout.write("".join(line % (number, number) for number in range(start, start + 1000)))
sys.stdout.flush()
os.execv({terraform!r}, [{terraform!r}, *sys.argv[1:]])
"""


def measure(site: Site, *, quick: bool) -> list[Figure]:
    tenant = new_tenant("runner")
    with running_console(site) as console:
        url = f"http://{console.host}:{console.port}"
        with running_runner(site, tenant, url) as runner:
            figures = [*plan_overhead(site, tenant, rounds=3 if quick else 15)]
            figures += idle(runner, seconds=3.0 if quick else 30.0)
        with running_runner(site, tenant, url, talkative=True) as runner:
            figures += long_log(tenant, runner, rounds=1 if quick else 5)
    return figures


LINES = 100_000


@dataclass(frozen=True)
class RunningRunner:
    process: subprocess.Popen[bytes]

    def pids(self) -> list[int]:
        """The runner and what belongs to it while it is idle: the guard."""
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        children = [int(child) for thread in threads for child in thread.read_text().split()]
        return [self.process.pid, *children]

    def resident_bytes(self) -> int:
        return sum(_status(pid, "VmRSS") for pid in self.pids())

    def peak_bytes(self) -> int:
        return _status(self.process.pid, "VmHWM")

    def cpu_seconds(self) -> float:
        return sum(_cpu_seconds(pid) for pid in self.pids())

    def wait_until_idle(self) -> None:
        """The relay of the last job is gone: two processes are left."""
        deadline = time.monotonic() + 60
        while len(self.pids()) > 2:
            if time.monotonic() > deadline:
                raise RuntimeError("The runner does not come to rest.")
            time.sleep(0.1)


@contextlib.contextmanager
def running_runner(
    site: Site, tenant: Tenant, url: str, *, talkative: bool = False, terraform: str = ""
) -> Iterator[RunningRunner]:
    """A runner of the tenant's; `terraform` is a stand-in of the caller's own."""
    folder = site.folder / f"{tenant.organization.slug}-{'talkative' if talkative else 'plain'}"
    folder.mkdir()
    terraform = terraform or (_talkative(folder) if talkative else find_terraform().path)
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "SLIPWAY_TERRAFORM": terraform,
        "SLIPWAY_RUNNER_CREDENTIAL": tenant.new_runner()[1],
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "runner.main", "start", "--console", url, "--data-dir", str(folder)],
            cwd=ROOT, env=environ, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield RunningRunner(process)
    finally:
        process.terminate()
        process.wait(30)


def plan_overhead(site: Site, tenant: Tenant, *, rounds: int) -> list[Figure]:
    """Each round measures both, so that they share the machine's mood."""
    spec = _spec(tenant)
    _plan(tenant, spec)
    bare, ours = [], []
    for number in range(rounds):
        bare.append(_bare_terraform(site.folder / f"bare-{number}"))
        ours.append(_plan(tenant, spec))
    overhead = statistics.median(b - a for a, b in zip(bare, ours, strict=True))
    return [
        Figure("terraform init && terraform plan", statistics.median(bare) * 1000, "ms"),
        Figure("a PLAN job of it, from claim to final status", statistics.median(ours) * 1000, "ms"),
        Figure("overhead of the runner", overhead * 1000, "ms", at_most=250),
    ]


def idle(runner: RunningRunner, *, seconds: float) -> list[Figure]:
    runner.wait_until_idle()
    before, began = runner.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    share = (runner.cpu_seconds() - before) / (time.monotonic() - began) * 100
    return [
        Figure(
            "an idle runner, resident (with its guard)", runner.resident_bytes() / 1024**2, "MB", at_most=60
        ),
        Figure("an idle runner, share of a core", share, "%", at_most=0.5),
    ]


def long_log(tenant: Tenant, runner: RunningRunner, *, rounds: int) -> list[Figure]:
    """From the claim to the final status, which follows the last line; Terraform's own time is within it."""
    speeds = sorted(LINES / _plan(tenant, _spec(tenant), seconds=120) for _ in range(rounds))
    return [
        Figure(
            f"{LINES:,} lines of Terraform's, to the console",
            statistics.median(speeds),
            "lines/s",
            at_least=20_000,
            note=f"{speeds[0]:,.0f} to {speeds[-1]:,.0f}",
        ),
        Figure("the runner's peak meanwhile, resident", runner.peak_bytes() / 1024**2, "MB", at_most=150),
    ]


def _plan(tenant: Tenant, spec: Spec, *, seconds: float = 60) -> float:
    """How long a PLAN took between its claim and its final status, by the database's clock."""
    job = request_job(spec=spec, type=JobType.PLAN, requested_by=tenant.person)
    deadline = time.monotonic() + seconds
    while (status := Job.objects.values_list("status", flat=True).get(pk=job.pk)) != "SUCCESS":
        if status == "FAILED" or time.monotonic() > deadline:
            raise RuntimeError(f"{job} is {status}: {Job.objects.get(pk=job.pk).error_message}")
        time.sleep(0.02)
    job.refresh_from_db()
    assert job.finished_at is not None and job.claimed_at is not None
    return (job.finished_at - job.claimed_at).total_seconds()


def _bare_terraform(folder: Path) -> float:
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    environ = {"PATH": os.environ["PATH"], "TF_CLI_CONFIG_FILE": os.devnull, "CHECKPOINT_DISABLE": "1"}
    terraform = find_terraform().path
    began = time.perf_counter()
    for command in (["init", "-json"], ["plan", "-json", "-out=plan"]):
        subprocess.run([terraform, *command], cwd=folder, env=environ, check=True, capture_output=True)
    return time.perf_counter() - began


def _spec(tenant: Tenant) -> Spec:
    spec = tenant.new_spec()
    revision = Revision.objects.get(spec=spec)
    document = {**revision.document, "files": FILES, "variables": {}}
    Revision.objects.create(spec=spec, number=2, author=tenant.person, message="bench", document=document)
    return spec


def _talkative(folder: Path) -> str:
    script = folder / "terraform"
    script.write_text(TALKATIVE.format(python=sys.executable, terraform=find_terraform().path, lines=LINES))
    script.chmod(0o755)
    return str(script)


def _status(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
