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
from uuid import uuid4

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bench.console_process import running_console
from bench.report import Figure
from bench.site import ROOT, Site
from bench.tenant import Tenant, new_tenant
from console.jobs.models import Job
from console.jobs.services import request_job
from runner.protocol import JobType
from runner.terraform.binary import find_terraform
from specs.models import Revision, Spec
from specs.services import change_variable

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
line = {line!r}
for start in range(0, {lines}, 1000):
    sys.stdout.write("".join(line % (number, number) for number in range(start, start + 1000)))
sys.stdout.flush()
os.execv({terraform!r}, [{terraform!r}, *sys.argv[1:]])
"""


def _event_line(message: str, kind: str, hook: str) -> str:
    """A line as Terraform prints it, with two places for its number."""
    return (
        f'{{"@level":"info","@message":"{message}","@module":"terraform.ui",'
        f'"@timestamp":"2026-01-01T00:00:00.000000Z","type":"{kind}","hook":{{"resource":'
        f'{{"addr":"terraform_data.many","module":"","resource_type":"terraform_data"}},{hook}}}}}\n'
    )


#: What the long logs are made of.
REFRESHING = _event_line(
    "terraform_data.many[%d]: Refreshing state... [id=5f1c-%d]", "refresh_start", '"action":"read"'
)
PRINTING = _event_line(
    "terraform_data.many (local-exec): row %d was copied to the other side",
    "provision_progress",
    '"provisioner":"local-exec","output":"row %d was copied to the other side"',
)


def measure(site: Site, *, quick: bool) -> list[Figure]:
    tenant = new_tenant("runner")
    with running_console(site) as console:
        url = f"http://{console.host}:{console.port}"
        with running_runner(site, tenant, url) as runner:
            figures = [*plan_overhead(site, tenant, rounds=3 if quick else 15)]
            figures += idle(runner, seconds=3.0 if quick else 30.0)
        rounds = 1 if quick else 5
        with running_runner(site, tenant, url, saying=REFRESHING) as runner:
            figures += long_log(tenant, runner, rounds=rounds)
        with running_runner(site, tenant, url, saying=PRINTING):
            figures.append(long_log_with_a_key(tenant, rounds=rounds))
    return figures


LINES = 100_000


@dataclass(frozen=True)
class RunningRunner:
    process: subprocess.Popen[bytes]

    def pids(self) -> list[int]:
        """The runner and what belongs to it while it is idle: the watchdog."""
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
    site: Site, tenant: Tenant, url: str, *, saying: str = "", terraform: str = ""
) -> Iterator[RunningRunner]:
    """A runner of the tenant's; its Terraform may say a line often, or be a stand-in of the caller's own."""
    folder = site.folder / f"runner-{uuid4().hex}"
    folder.mkdir()
    terraform = terraform or (_talkative(folder, saying) if saying else find_terraform().path)
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
    bare, supervised = [], []
    for number in range(rounds):
        bare.append(_bare_terraform(site.folder / f"bare-{number}"))
        supervised.append(_plan(tenant, spec))
    overhead = statistics.median(b - a for a, b in zip(bare, supervised, strict=True))
    return [
        Figure("terraform init && terraform plan", statistics.median(bare) * 1000, "ms"),
        Figure("a PLAN job of it, from claim to final status", statistics.median(supervised) * 1000, "ms"),
        Figure("overhead of the runner", overhead * 1000, "ms", at_most=250),
    ]


def idle(runner: RunningRunner, *, seconds: float) -> list[Figure]:
    runner.wait_until_idle()
    before, began = runner.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    share = (runner.cpu_seconds() - before) / (time.monotonic() - began) * 100
    return [
        Figure(
            "an idle runner, resident (with its watchdog)",
            runner.resident_bytes() / 1024**2,
            "MB",
            at_most=60,
        ),
        Figure("an idle runner, share of a core", share, "%", at_most=0.5),
    ]


def long_log(tenant: Tenant, runner: RunningRunner, *, rounds: int) -> list[Figure]:
    """Measure from the claim to the final status, Terraform's own time included."""
    return [
        _speed(
            f"{LINES:,} lines of Terraform's, to the console",
            [_plan(tenant, _spec(tenant), seconds=120) for _ in range(rounds)],
        ),
        Figure("the runner's peak meanwhile, resident", runner.peak_bytes() / 1024**2, "MB", at_most=150),
    ]


def long_log_with_a_key(tenant: Tenant, *, rounds: int) -> Figure:
    """A secret of many lines has hundreds of forms to look for, and a provisioner may print one in pieces."""
    return _speed(
        "the same of a provisioner's, with a private key to mask",
        [_plan(tenant, _spec(tenant, key=_private_key()), seconds=120) for _ in range(rounds)],
    )


def _speed(label: str, seconds: list[float]) -> Figure:
    speeds = sorted(LINES / duration for duration in seconds)
    note = f"{speeds[0]:,.0f} to {speeds[-1]:,.0f}"
    return Figure(label, statistics.median(speeds), "lines/s", at_least=20_000, note=note)


def _private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form).decode()


def _plan(tenant: Tenant, spec: Spec, *, seconds: float = 60) -> float:
    """Return the seconds of a PLAN from its claim to its final status, by the database's clock."""
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


def _spec(tenant: Tenant, *, key: str = "") -> Spec:
    spec = tenant.new_spec()
    revision = Revision.objects.get(spec=spec)
    document = {**revision.document, "files": FILES, "variables": {}}
    Revision.objects.create(spec=spec, number=2, author=tenant.person, message="bench", document=document)
    if key:
        change_variable(
            spec=spec, category="environment", name="KEY", value=key, sensitive=True, author=tenant.person
        )
    return spec


def _talkative(folder: Path, line: str) -> str:
    script = folder / "terraform"
    facts = {"python": sys.executable, "terraform": find_terraform().path, "lines": LINES, "line": line}
    script.write_text(TALKATIVE.format(**facts))
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
