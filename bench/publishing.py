"""Inserts by 16 clients at once: alone, while our publisher notifies, and with NOTIFY in each transaction.

NOTIFY takes a lock of the whole server at commit. Published from a thread of its own, in batches, it should
leave the inserts alone; the last contestant shows what it would cost inside them.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg

from bench.report import Figure
from bench.rounds import take_turns
from bench.site import Site
from bench.tenant import Tenant, new_tenant
from console.live import topics
from console.live.publish import CHANNEL, Publisher
from console.local.embedded_postgres import ROLE, installed_programs

CLIENTS = 16
#: Topics published each second meanwhile: three for each of as many jobs as the console carries.
TOPICS_PER_SECOND = 900

INSERT = """
INSERT INTO jobs_job
SELECT made.* FROM jobs_job AS model,
     LATERAL jsonb_populate_record(model, jsonb_build_object(
         'id', uuidv7(), 'number', nextval('bench_number'), 'spec_id', NULL,
         'config_snapshot', '{{}}'::jsonb)) AS made
WHERE model.id = '{model}';
"""


def measure(site: Site, *, quick: bool) -> list[Figure]:
    seconds, rounds = (1, 2) if quick else (2, 9)
    inserts = PgBench(site, new_tenant("publishing"), seconds)

    def while_publishing() -> float:
        with publishing():
            return inserts.per_second(inserts.plain)

    reached = take_turns(
        {
            "alone": lambda: inserts.per_second(inserts.plain),
            "published": while_publishing,
            "notified": lambda: inserts.per_second(inserts.notifying),
        },
        rounds=rounds,
    )
    return [
        Figure(f"inserts by {CLIENTS} clients, nothing published", reached.median("alone"), "jobs/s"),
        Figure(
            f"  while {TOPICS_PER_SECOND} topics/s are published, as a part",
            reached.ratio("published", "alone"),
        ),
        Figure("  with NOTIFY in each transaction, as a part", reached.ratio("notified", "alone")),
    ]


class PgBench:
    """PostgreSQL's own load generator: Python's clients would wait for each other, not for the server."""

    def __init__(self, site: Site, tenant: Tenant, seconds: int) -> None:
        self._site, self._seconds = site, seconds
        insert = INSERT.format(model=tenant.queue_job(tenant.new_spec()).pk)
        notify = f"SELECT pg_notify('{CHANNEL}', 'pool:{tenant.pool.pk}');\n"
        self.plain = self._script("plain", insert)
        self.notifying = self._script("notifying", f"BEGIN;{insert}{notify}COMMIT;")
        with psycopg.connect(site.database_url, autocommit=True) as connection:
            connection.execute("CREATE SEQUENCE bench_number START 1000000")

    def per_second(self, script: Path) -> float:
        program = str(installed_programs() / "pgbench")
        load = [f"--client={CLIENTS}", "--jobs=2", f"--time={self._seconds}", f"--file={script}"]
        answer = subprocess.run(
            [program, "--no-vacuum", "--protocol=prepared", *load, "slipway"],
            env=self._environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        match = re.search(r"^tps = ([\d.]+)", answer.stdout, re.MULTILINE)
        assert match is not None, answer.stdout
        return float(match[1])

    def _environment(self) -> dict[str, str]:
        postgres = self._site.postgres
        server = {"PGHOST": str(postgres.socket_directory), "PGUSER": ROLE, "PGPASSWORD": postgres.password}
        return {**os.environ, **server}

    def _script(self, name: str, text: str) -> Path:
        path = self._site.folder / f"{name}.sql"
        # pgbench sends a statement per line's end, so each is one line.
        path.write_text(text.replace("\n", " ").replace("; ", ";\n"))
        return path


@contextlib.contextmanager
def publishing() -> Iterator[None]:
    """Publish as a busy console does, from a thread of its own, while somebody listens."""
    publisher, stop = Publisher(), threading.Event()

    def publish() -> None:
        while not stop.wait(1 / TOPICS_PER_SECOND):
            publisher.publish([topics.job(uuid4())])

    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        publisher.stop()
