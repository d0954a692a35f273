"""Log lines through HTTP: a few jobs whose runners send one full batch after the other."""

from __future__ import annotations

import statistics

from bench.clients import BATCH_LINES, Clients, send_logs
from bench.console_process import running_console
from bench.report import Figure
from bench.site import Site
from bench.tenant import new_tenant

WRITERS = 4


def measure(site: Site, *, quick: bool) -> list[Figure]:
    batches, rounds = (5, 2) if quick else (40, 9)
    tenant = new_tenant("logs")
    tenant.queue_jobs(WRITERS)
    credentials = [tenant.new_runner()[1] for _ in range(WRITERS)]
    lines = WRITERS * batches * BATCH_LINES
    with running_console(site) as console, Clients(send_logs, console, credentials) as clients:
        clients.ask(batches)  # does not count
        reached = [lines / clients.ask(batches) for _ in range(rounds)]
    return [Figure("log lines through HTTP", statistics.median(reached), "lines/s", at_least=60_000)]
