"""Claim and complete, one job at a time: our services, their own statements in a bare loop, and a peer.

A job of ours is started in between (CLAIMED → PROCESSING), which the peer has no equal of: the clock stands
still meanwhile, for us and for the bare loop. What a whole job costs is shown beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import patch
from uuid import UUID

import psycopg

from bench.peer import Peer, peer_is_installed
from bench.report import Figure, say
from bench.rounds import Contestant, Rounds, take_turns
from bench.site import Site
from bench.tenant import TYPES, new_tenant
from console.ids import new_id
from console.jobs import attempts, queue
from console.jobs.queue import Held
from console.prepared_statements import fetch_one
from console.runners.services import KnownRunner
from runner.protocol import ClaimRequest, StatusReport

Values = dict[str, Any]


class Seconds(NamedTuple):
    """The seconds that the steps of one job took."""

    claim: float
    start: float
    complete: float


def measure(site: Site, *, quick: bool) -> list[Figure]:
    jobs, rounds = (20, 3) if quick else (150, 21)
    tenant = new_tenant("queue")
    runner, _ = tenant.new_runner()
    tenant.queue_jobs(3 * jobs * (rounds + 1) + 1)
    with ExitStack() as open_until_the_end:
        connection = psycopg.connect(site.database_url, autocommit=True)
        open_until_the_end.enter_context(connection)
        connection.execute("VACUUM ANALYZE")
        # As the console's own connections plan them.
        connection.execute("SET plan_cache_mode = force_generic_plan")
        connection.execute("SET enable_seqscan = off")
        raw = RawLoop(connection, record_statements(lambda: run_one(runner)))
        contestants: dict[str, Contestant] = {
            "raw": lambda: jobs / sum(step.claim + step.complete for step in raw.run(jobs)),
            "ours": lambda: jobs / sum(step.claim + step.complete for step in run(runner, jobs)),
            "whole": lambda: jobs / sum(map(sum, run(runner, jobs))),
        }
        if peer_is_installed():
            peer = open_until_the_end.enter_context(Peer(site))
            contestants["peer"] = lambda: peer.no_ops_per_second(jobs)
        else:
            say("procrastinate is not installed and not measured; `make bench` installs it.")
        return _figures(take_turns(contestants, rounds=rounds))


def _figures(reached: Rounds) -> list[Figure]:
    figures = [
        Figure("claim + complete, bare psycopg loop", reached.median("raw"), "jobs/s"),
        Figure("claim + complete, our services", reached.median("ours"), "jobs/s"),
        Figure("  as a part of the bare loop", reached.ratio("ours", "raw"), at_least=0.70),
        Figure("claim + start + complete, our services", reached.median("whole"), "jobs/s"),
    ]
    if "peer" in reached.reached:
        figures += [
            Figure("procrastinate, one no-op at a time", reached.median("peer"), "jobs/s"),
            Figure("  our claim + complete, compared", reached.ratio("ours", "peer"), "×", at_least=1.3),
            Figure("  our claim + start + complete, compared", reached.ratio("whole", "peer"), "×"),
            Figure("  procrastinate as a part of the bare loop", reached.ratio("peer", "raw")),
        ]
    return figures


def run(runner: KnownRunner, count: int) -> list[Seconds]:
    return [run_one(runner) for _ in range(count)]


def run_one(runner: KnownRunner) -> Seconds:
    """One job from claim to SUCCESS, as the wire's views call the services."""
    claim_at = perf_counter()
    claim = attempts.claim_job(runner=runner, request=ClaimRequest(claim_key=str(new_id()), types=TYPES))
    start_at = perf_counter()
    assert claim is not None, "the queue ran dry"
    holder = Held(UUID(claim.job_id), UUID(claim.claim_id), runner.id)
    attempts.start_attempt(held=holder)
    end_at = perf_counter()
    report = StatusReport(claim_id=claim.claim_id, status="SUCCESS", result={})
    attempts.finish_attempt(held=holder, runner=runner, report=report)
    return Seconds(start_at - claim_at, end_at - start_at, perf_counter() - end_at)


def record_statements(work: Callable[[], object]) -> list[tuple[str, Values]]:
    """The queue's statements that the work sends, with their values, so that the bare loop cannot differ."""
    statements: list[tuple[str, Values]] = []

    def recording(statement: str, values: Values) -> tuple[Any, ...] | None:
        statements.append((statement, values))
        return fetch_one(statement, values)

    with patch.object(queue, "fetch_one", recording):
        work()
    return statements


def with_new_ids(values: Values) -> Values:
    """The recorded values, with fresh ones for what must not be sent twice."""
    return values | {name: new_id() for name in ("key", "claim", "event") if name in values}


@dataclass(frozen=True)
class RawLoop:
    """The raw limit: the same statements on a bare connection, and nothing else."""

    connection: psycopg.Connection
    statements: list[tuple[str, Values]]

    def run(self, count: int) -> list[Seconds]:
        return [self._run_one() for _ in range(count)]

    def _run_one(self) -> Seconds:
        (claim, claim_values), (start, start_values), (end, end_values) = self.statements
        claim_at = perf_counter()
        row = self.connection.execute(claim, with_new_ids(claim_values)).fetchone()
        start_at = perf_counter()
        assert row is not None, "the queue ran dry"
        ids = {"job": row[0], "claim": row[1]}
        self.connection.execute(start, with_new_ids(start_values) | ids).fetchone()
        end_at = perf_counter()
        end_row = self.connection.execute(end, with_new_ids(end_values) | ids).fetchone()
        assert end_row is not None, "the end was refused"
        return Seconds(start_at - claim_at, end_at - start_at, perf_counter() - end_at)
