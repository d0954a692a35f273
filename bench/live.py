"""Latency from Terraform's write to the browser's frame, with 50 viewers, one of them a real browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bench.browser import a_page
from bench.clients import Clients
from bench.console_process import running_console
from bench.report import Figure, say
from bench.rounds import percentile
from bench.runner import running_runner
from bench.site import Site
from bench.tenant import Tenant, new_tenant
from bench.viewers import watch
from bench.visitor import visitor
from console.jobs.services import request_job
from runner.protocol import JobType
from runner.terraform.binary import find_terraform
from specs.models import Revision

VIEWERS = 50
LINES_A_SECOND = 2_000

#: A Terraform that talks at a steady pace; every line says when it was written.
STEADY = """#!{python} -S
import os, sys, time
if sys.argv[1:2] != ["plan"]:
    os.execv({terraform!r}, [{terraform!r}, *sys.argv[1:]])
line = '{{"@level":"info","@message":"written at %d, line %d: {filler}","type":"log"}}\\n'
began = time.time()
written = 0
while written < {lines}:
    due = min({lines}, int((time.time() - began) * {rate}))
    now = time.time() * 1000
    sys.stdout.write("".join(line % (now, number) for number in range(written + 1, due + 1)))
    sys.stdout.flush()
    written = due
    time.sleep(0.005)
os.execv({terraform!r}, [{terraform!r}, *sys.argv[1:]])
"""

#: Every line's way: from the time it carries to the frame after the one that drew it.
LISTEN = """
() => {
  window.seen = { delays: [], numbers: [] };
  document.addEventListener("log-lines", ({ detail }) => requestAnimationFrame(() => {
    const now = Date.now();
    for (const { message } of detail.lines) {
      const match = /^written at (\\d+), line (\\d+):/.exec(message);
      if (!match) continue;
      window.seen.delays.push(now - Number(match[1]));
      window.seen.numbers.push(Number(match[2]));
    }
  }));
}
"""


def measure(site: Site, *, quick: bool) -> list[Figure]:
    lines = LINES_A_SECOND * (6 if quick else 30)
    tenant = new_tenant("live")
    with running_console(site) as console:
        person = visitor(console, tenant)
        terraform = _steady(site.folder / "steady", lines)
        spec = _spec(tenant)
        with (
            a_page(person) as page,
            Clients(watch, console, [person.cookie]) as viewers,
        ):
            job = request_job(spec=spec, type=JobType.PLAN, requested_by=tenant.person)
            page.goto(f"{person.url}/{tenant.organization.slug}/jobs/{job.number}/")
            page.get_by_text("live", exact=True).wait_for(timeout=60_000)
            page.evaluate(LISTEN)
            viewers.ask({"job": str(job.pk), "viewers": VIEWERS - 1, "lines": lines})
            with running_runner(site, tenant, person.url, terraform=terraform):
                viewer_reports = viewers.ask("finish")
                page.wait_for_function(
                    "(count) => window.seen.delays.length >= count", arg=lines, timeout=60_000
                )
                latencies: dict[str, Any] = page.evaluate("window.seen")
    return _figures(latencies, viewer_reports, lines)


def _figures(latencies: dict[str, Any], viewer_reports: list[dict[str, Any]], lines: int) -> list[Figure]:
    expected = list(range(1, lines + 1))
    dropped = lines - len(set(latencies["numbers"])) + sum(lines - other["lines"] for other in viewer_reports)
    doubled = (
        len(latencies["numbers"])
        - len(set(latencies["numbers"]))
        + sum(other["doubled"] for other in viewer_reports)
    )
    say(f"  in order in the browser: {latencies['numbers'] == expected}")
    socket_delays = [delay for other in viewer_reports for delay in other["delays"]]
    return [
        Figure(
            "Terraform's write → the browser's frame, p50",
            percentile(latencies["delays"], 50),
            "ms",
            at_most=150,
        ),
        Figure(
            "Terraform's write → the browser's frame, p99",
            percentile(latencies["delays"], 99),
            "ms",
            at_most=500,
        ),
        Figure(
            f"  to the other {len(viewer_reports)} viewers' sockets, p50", percentile(socket_delays, 50), "ms"
        ),
        Figure(
            f"  to the other {len(viewer_reports)} viewers' sockets, p99", percentile(socket_delays, 99), "ms"
        ),
        Figure("lines that a viewer missed or got twice", dropped + doubled, at_most=0),
    ]


def _steady(folder: Path, lines: int) -> str:
    folder.mkdir()
    script = folder / "terraform"
    script.write_text(
        STEADY.format(
            python=sys.executable,
            terraform=find_terraform().path,
            lines=lines,
            rate=LINES_A_SECOND,
            filler="x" * 80,
        )
    )
    script.chmod(0o755)
    return str(script)


def _spec(tenant: Tenant) -> Any:
    spec = tenant.new_spec()
    revision = Revision.objects.get(spec=spec)
    document = {**revision.document, "files": {"main.tf": ""}, "variables": {}}
    Revision.objects.create(spec=spec, number=2, author=tenant.person, message="bench", document=document)
    return spec
