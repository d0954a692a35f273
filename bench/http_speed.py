"""Whole jobs through HTTP: bare runners in one process, the console in another, on the same cores."""

from __future__ import annotations

import statistics

from bench.clients import Clients, run_jobs
from bench.console_process import running_console
from bench.report import Figure
from bench.site import Site
from bench.tenant import new_tenant

#: Enough to keep the console busy; more only wait for each other.
RUNNERS = 8


def measure(site: Site, *, quick: bool) -> list[Figure]:
    jobs, rounds = (5, 2) if quick else (50, 9)
    tenant = new_tenant("http")
    tenant.queue_jobs(RUNNERS * jobs * (rounds + 1))
    credentials = [tenant.new_runner()[1] for _ in range(RUNNERS)]
    with running_console(site) as console, Clients(run_jobs, console, credentials) as clients:
        clients.ask(jobs)  # does not count
        reached = [RUNNERS * jobs / clients.ask(jobs) for _ in range(rounds)]
    return [Figure("jobs through HTTP", statistics.median(reached), "jobs/s", at_least=200)]
