"""Claims from a deep queue with a long past, against claims from a short queue without one.

Two copies of the database stand beside each other, so that the two can take turns.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from bench.queue_speed import record_statements, with_new_ids
from bench.report import Figure
from bench.rounds import take_turns
from bench.site import Site
from bench.tenant import TYPES, new_tenant
from console.ids import new_id
from console.jobs import attempts
from console.jobs.models import Job
from console.live.publish import publisher
from console.local.installation import own_connections
from console.runners.services import KnownRunner
from runner.protocol import ClaimRequest

#: Jobs like the model, without a spec, so that any number of them can be queued.
FILL = """
INSERT INTO jobs_job
SELECT made.* FROM jobs_job AS model, generate_series(1, %(count)s) AS n,
     LATERAL jsonb_populate_record(model, jsonb_build_object(
         'id', uuidv7(), 'number', %(after)s + n, 'spec_id', NULL, 'config_snapshot', '{}'::jsonb,
         'status', %(status)s, 'finished_at', CASE WHEN %(status)s <> 'QUEUED' THEN now() END)) AS made
WHERE model.id = %(model)s
"""

INDEXES = """
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
WHERE indrelid = 'jobs_job'::regclass AND NOT indisunique
"""


@dataclass(frozen=True)
class Size:
    queued: int
    finished: int

    def __str__(self) -> str:
        return f"{self.queued:,} queued, {self.finished:,} finished"


def measure(site: Site, *, quick: bool) -> list[Figure]:
    claims, rounds = (5, 3) if quick else (20, 21)
    short, deep = Size(1_000, 0), Size(2_000, 10_000) if quick else Size(200_000, 1_000_000)
    tenant = new_tenant("depth")
    runner, _ = tenant.new_runner()
    statement, values = _claim_statement(runner)
    model = tenant.queue_job(tenant.new_spec())
    with _copy(site, model, short) as few, _copy(site, model, deep) as many:
        from_few, from_many = Claims(few, statement, values), Claims(many, statement, values)
        reached = take_turns(
            {"few": lambda: from_few.milliseconds(claims), "many": lambda: from_many.milliseconds(claims)},
            rounds=rounds,
        )
    return [
        Figure(f"one claim, {short}", reached.median("few"), "ms"),
        Figure(f"one claim, {deep}", reached.median("many"), "ms"),
        Figure("  slower by", reached.ratio("many", "few"), "×", at_most=1.3),
    ]


@dataclass(frozen=True)
class Claims:
    connection: psycopg.Connection
    statement: str
    values: dict[str, Any] = field(repr=False)

    def milliseconds(self, count: int) -> float:
        """The median time of one claim, commit included."""
        return statistics.median(self._claim_once() for _ in range(count))

    def _claim_once(self) -> float:
        values = with_new_ids(self.values)
        began = time.perf_counter()
        row = self.connection.execute(self.statement, values).fetchone()
        assert row is not None, "the queue ran dry"
        return (time.perf_counter() - began) * 1_000


def _claim_statement(runner: KnownRunner) -> tuple[str, dict[str, Any]]:
    """The claim as the services send it; there is nothing to claim yet."""
    request = ClaimRequest(claim_key=str(new_id()), types=TYPES)
    ((statement, values),) = record_statements(lambda: attempts.claim_job(runner=runner, request=request))
    return statement, values


@contextlib.contextmanager
def _copy(site: Site, model: Job, size: Size) -> Iterator[psycopg.Connection]:
    """A copy of the database with that many jobs in it, dropped afterwards.

    PostgreSQL copies only what nobody is connected to, so this process lets go of its connections first.
    """
    name = f"copy_{size.queued}_{size.finished}"
    with own_connections():
        publisher.stop()
    with psycopg.connect(site.postgres.url("postgres"), autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE slipway").format(sql.Identifier(name)))
        try:
            with psycopg.connect(site.postgres.url(name), autocommit=True) as connection:
                _fill(connection, model, size)
                yield connection
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _fill(connection: psycopg.Connection, model: Job, size: Size) -> None:
    """Insert within seconds: without foreign key triggers, and with the indexes rebuilt at the end."""
    finished = {"model": model.pk, "status": "SUCCESS", "count": size.finished, "after": 10}
    queued = {"model": model.pk, "status": "QUEUED", "count": size.queued, "after": 10 + size.finished}
    indexes = connection.execute(INDEXES).fetchall()
    connection.execute("SET session_replication_role = replica")
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    for rows in (finished, queued):
        psycopg.ClientCursor(connection).execute(FILL, rows)
    for _, definition in indexes:
        connection.execute(definition)
    connection.execute("SET session_replication_role = origin")
    connection.execute("VACUUM ANALYZE")
    connection.execute("CHECKPOINT")
