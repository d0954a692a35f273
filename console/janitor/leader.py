"""Leader election: any number of janitors may run, one of them holds the advisory lock and works."""

import logging
import threading

import psycopg
from django.db import close_old_connections

from console.janitor.services import run_once
from console.live.connection import conninfo

LOCK_KEY = 7_115_477_921  # "slipway" on a telephone's keys; any unused number
INTERVAL_SECONDS = 1.0

logger = logging.getLogger("slipway.janitor")


def run(stop: threading.Event) -> None:
    """Lead when nobody else does, until told to stop."""
    has_logged = False
    while not stop.is_set():
        try:
            with psycopg.connect(conninfo(), autocommit=True) as lock:
                if not _lead_while_possible(lock, stop) and not has_logged:
                    logger.info("another janitor leads, this one waits")
                    has_logged = True
        except psycopg.Error as error:
            logger.warning("the database is away, trying again: %s", error)
        stop.wait(INTERVAL_SECONDS)


def _lead_while_possible(lock: psycopg.Connection, stop: threading.Event) -> bool:
    """Lead while the session holds the lock; return whether it did. The lock ends with the connection."""
    row = lock.execute("SELECT pg_try_advisory_lock(%s)", [LOCK_KEY]).fetchone()
    if not row or not row[0]:
        return False
    logger.info("this janitor leads")
    while not stop.is_set():
        lock.execute("SELECT 1")  # raises when the session, and with it the lock, is gone
        _run_safely()
        stop.wait(INTERVAL_SECONDS)
    return True


def _run_safely() -> None:
    close_old_connections()
    try:
        run_once()
    except Exception:
        # One failed run must not end the janitor; the next one tries everything again.
        logger.exception("a run of the janitor failed")
    finally:
        close_old_connections()
