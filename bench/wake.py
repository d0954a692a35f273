"""Latency from the request of a job to its claim by an idle runner that holds a claim request open."""

from __future__ import annotations

import random
import time
from typing import Any, NamedTuple
from unittest.mock import patch

from bench.clients import Clients, wait_for_jobs
from bench.console_process import running_console
from bench.report import Figure
from bench.rounds import percentile
from bench.site import Site
from bench.tenant import Tenant, new_tenant
from console.jobs import queue
from specs.models import Spec

ENQUEUE = queue.enqueue


class Waited(NamedTuple):
    """Milliseconds of one job: asked for, checked, put into the queue, in the runner's hands."""

    request_to_queued: float
    enqueue_to_claimed: float
    request_to_claimed: float


def measure(site: Site, *, quick: bool) -> list[Figure]:
    jobs = 10 if quick else 400
    tenant = new_tenant("wake")
    _, credential = tenant.new_runner()
    spec = tenant.new_spec()
    with running_console(site) as console, Clients(wait_for_jobs, console, [credential]) as clients:
        waited = [_wait_of_one_job(clients, tenant, spec) for _ in range(jobs + 1)]
    columns = Waited(*zip(*waited[1:], strict=True))  # the first does not count
    return [
        Figure("request → queued, p50", percentile(columns.request_to_queued, 50), "ms"),
        Figure("enqueue → claimed, p50", percentile(columns.enqueue_to_claimed, 50), "ms", at_most=15),
        Figure("enqueue → claimed, p99", percentile(columns.enqueue_to_claimed, 99), "ms", at_most=60),
        Figure("request → claimed, p50", percentile(columns.request_to_claimed, 50), "ms"),
        Figure("request → claimed, p99", percentile(columns.request_to_claimed, 99), "ms"),
    ]


def _wait_of_one_job(clients: Clients, tenant: Tenant, spec: Spec) -> Waited:
    """The request first reads and checks the configuration; the enqueue begins with the job's INSERT."""
    clients.ask("wait")
    time.sleep(random.uniform(0.04, 0.06))  # The request is held by now, and the last job's news are old.
    enqueued_at: list[float] = []

    def enqueue(**values: Any) -> Any:
        enqueued_at.append(time.monotonic())
        return ENQUEUE(**values)

    requested_at = time.monotonic()
    with patch.object(queue, "enqueue", enqueue):
        tenant.queue_job(spec)
    queued_at = time.monotonic()
    claimed_at: float = clients.hear()
    return Waited(
        request_to_queued=(queued_at - requested_at) * 1_000,
        enqueue_to_claimed=(claimed_at - enqueued_at[0]) * 1_000,
        request_to_claimed=(claimed_at - requested_at) * 1_000,
    )
