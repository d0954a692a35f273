"""Run hand-written statements as prepared ones: PostgreSQL parses and plans each once per connection.

Django binds values into the text of a statement, so that each call sends a new statement; planning a claim
took longer than executing it. Connections are long-lived (the pool keeps them), so preparing pays.
"""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg.pq import TransactionStatus

#: The statements that each connection has prepared, with the types of their values.
_prepared: WeakKeyDictionary[psycopg.Connection[Any], set[tuple[Any, ...]]] = WeakKeyDictionary()


def fetch_one(statement: str, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Run the statement on Django's connection, within the open transaction, and return its first row."""
    wrapper = connections[DEFAULT_DB_ALIAS]
    if wrapper.connection is None:
        wrapper.ensure_connection()
    raw = wrapper.connection
    # Django turns preparing off. Its own cursors never prepare, whatever this says.
    raw.prepare_threshold = 0
    with wrapper.wrap_database_errors, psycopg.Cursor(raw) as cursor:
        if not _is_prepared(raw, statement, values):
            return _prepare_and_fetch_one(cursor, statement, values)
        return cursor.execute(statement, values).fetchone()


def _is_prepared(raw: psycopg.Connection[Any], statement: str, values: Mapping[str, Any]) -> bool:
    keys = _prepared.setdefault(raw, set())
    key = (statement, *map(type, values.values()))
    if key in keys:
        return True
    keys.add(key)
    return False


def _prepare_and_fetch_one(
    cursor: psycopg.Cursor[Any], statement: str, values: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    """Prepare without sequential scans: the plan is kept, and a table that is small now grows."""
    cursor.execute("SET enable_seqscan = off")
    try:
        row: tuple[Any, ...] | None = cursor.execute(statement, values).fetchone()
    finally:
        if cursor.connection.info.transaction_status != TransactionStatus.INERROR:
            cursor.execute("RESET enable_seqscan")
    return row
