"""The cost of the busiest requests: few statements, each complete in itself, and no savepoint.

The server's own log is asked, so that it does not matter how a statement was sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from runner.protocol import Claim
from tests.console_app import Console, RunnerClient
from tests.people import Tenant, some_uuid
from tests.waiting import wait_until

#: What the process does beside the request: notifications, signs of life, and what the pool asks.
BESIDE = (
    "pg_notify",
    "live_consolebeat",
    "LISTEN",
    "set_config('TimeZone'",
    "pg_reload_conf",
    "SHOW ",
    "enable_seqscan",
)


class ServerLog:
    """The statements that the server carried out."""

    def __init__(self) -> None:
        self._database = _value_of("SELECT current_database()")
        self._path = Path(_value_of("SHOW data_directory")).parent / "postgres.log"

    def during(self, work: Callable[[], object]) -> list[str]:
        begin, end = f"begin {some_uuid()}", f"end {some_uuid()}"
        _value_of(f"SELECT '{begin}'")
        work()
        _value_of(f"SELECT '{end}'")
        wait_until(lambda: end in self._text(), what="the server's log")
        return _statements(self._text().partition(begin)[2].partition(end)[0], self._database)

    def _text(self) -> str:
        return self._path.read_text(errors="replace")


def _statements(text: str, database: str) -> list[str]:
    """A statement begins with the log's prefix; its later lines are indented by a tab.

    The server is shared: what other processes do in their own databases is not ours.
    """
    entries = re.split(r"^(?=\d{4}-\d\d-\d\d )", text, flags=re.MULTILINE)
    ours = rf"\] {re.escape(database)} LOG:  (?:statement|execute [^:]*): (.*)"
    logged = [re.search(ours, entry, re.DOTALL) for entry in entries]
    statements = [match.group(1).strip() for match in logged if match]
    return [one for one in statements if not any(word in one for word in BESIDE) and not _is_marker(one)]


def _is_marker(statement: str) -> bool:
    """A marker, or what is left of the one at which the log was cut."""
    return bool(re.match(r"SELECT '(begin|end|$)", statement))


def _value_of(statement: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return str(cursor.fetchone()[0])


@pytest.fixture
def server_log(transactional_db: None) -> Iterator[ServerLog]:
    _set_logging("SET log_statement = 'all'")
    yield ServerLog()
    _set_logging("RESET log_statement")


def _set_logging(how: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER SYSTEM {how}")
        cursor.execute("SELECT pg_reload_conf()")
    expected = "all" if "all" in how else "none"
    wait_until(lambda: _value_of("SHOW log_statement") == expected, what="the server's new setting")


def settle(runner: RunnerClient, ours: Tenant) -> Claim:
    """A job under way, after requests that have noted the runner's contact and warmed everything up."""
    ours.request(spec=ours.new_spec("warming"))
    warm = runner.take_and_start()
    runner.log(warm, 1, "warm")
    runner.beat(warm)
    runner.succeed(warm)
    ours.request(spec=ours.new_spec("measured"))
    return runner.take_and_start()


def hot_paths(runner: RunnerClient, ours: Tenant) -> dict[str, tuple[Callable[[], Any], int]]:
    """Return each hot path with its limit of statements: the credential's, unless remembered, and its own.

    A statement that does nothing is tried again after the credential was verified.
    """
    claim = settle(runner, ours)
    ours.request()
    return {
        "heartbeat": (lambda: runner.beat(claim), 2),
        "log": (lambda: runner.log(claim, 1, "one", "two"), 2),
        "log repeated": (lambda: runner.log(claim, 1, "one", "two"), 4),
        "finish": (lambda: runner.succeed(claim), 2),
        "claim": (runner.take, 2),
        "claim of nothing": (runner.claim, 2),
    }


def test_hot_paths_use_no_savepoint_and_few_statements(
    server_log: ServerLog, runner: RunnerClient, ours: Tenant
) -> None:
    for name, (request, allowed) in hot_paths(runner, ours).items():
        statements = server_log.during(request)
        assert statements, f"{name}: the server's log has nothing of it"
        text = "\n".join(statements)
        assert "SAVEPOINT" not in text.upper(), f"{name}: {text}"
        assert len(statements) <= allowed, f"{name} took {len(statements)} statements:\n{text}"


def test_a_heartbeat_writes_the_claim_only(server_log: ServerLog, runner: RunnerClient, ours: Tenant) -> None:
    claim = settle(runner, ours)
    statements = server_log.during(lambda: runner.beat(claim))
    writes = [statement for statement in statements if re.match(r"\s*(WITH|INSERT|UPDATE|DELETE)", statement)]
    assert len(writes) == 1
    assert writes[0].lstrip().startswith("UPDATE jobs_jobclaim")


def test_starting_and_failing_use_no_savepoint_either(
    server_log: ServerLog, runner: RunnerClient, ours: Tenant
) -> None:
    settle(runner, ours)
    ours.request()
    claim = runner.take()
    for request in (lambda: runner.start(claim), lambda: runner.fail(claim)):
        statements = server_log.during(request)
        assert "SAVEPOINT" not in "\n".join(statements).upper()
        assert len(statements) <= 6, statements


def test_asking_for_a_job_uses_no_savepoint(server_log: ServerLog, console: Console, ours: Tenant) -> None:
    operator, spec = console.person(ours, "operator"), ours.spec
    body = {"spec": str(spec.pk), "type": "PLAN"}
    statements = server_log.during(lambda: operator.post("/api/jobs", json=body))
    assert "SAVEPOINT" not in "\n".join(statements).upper()
