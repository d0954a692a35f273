"""Leader election: any number of janitors may run, one of them holds the advisory lock and works."""

import logging
import threading

import psycopg
from django.db import close_old_connections

from console.janitor.services import look
from console.live.connection import conninfo

LOCK_KEY = 7_115_477_921  # "slipway" on a telephone's keys; any number that nobody else uses
LOOK_EVERY_SECONDS = 1.0

logger = logging.getLogger("slipway.janitor")


def run(stop: threading.Event) -> None:
    """Lead when nobody else does, until told to stop."""
    said_that_it_waits = False
    while not stop.is_set():
        try:
            with psycopg.connect(conninfo(), autocommit=True) as lock:
                if not _lead_while_possible(lock, stop) and not said_that_it_waits:
                    logger.info("another janitor leads, this one waits")
                    said_that_it_waits = True
        except psycopg.Error as error:
            logger.warning("the database is away, trying again: %s", error)
        stop.wait(LOOK_EVERY_SECONDS)


def _lead_while_possible(lock: psycopg.Connection, stop: threading.Event) -> bool:
    """Whether it led. The session holds the lock: when the connection is gone, so is the lock."""
    row = lock.execute("SELECT pg_try_advisory_lock(%s)", [LOCK_KEY]).fetchone()
    if not row or not row[0]:
        return False
    logger.info("this janitor leads")
    while not stop.is_set():
        lock.execute("SELECT 1")  # raises when the session, and with it the lock, is gone
        _look_once()
        stop.wait(LOOK_EVERY_SECONDS)
    return True


def _look_once() -> None:
    close_old_connections()
    try:
        look()
    except Exception:
        # One failed look must not end the janitor; the next one tries everything again.
        logger.exception("a look failed")
    finally:
        close_old_connections()
