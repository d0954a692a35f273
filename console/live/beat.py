"""The thread by which a console process shows that it serves requests."""

import logging
import threading

import psycopg

from console.ids import new_id
from console.live.connection import conninfo

BEAT_SECONDS = 5.0
#: Three missed beats: the process is gone.
GONE_AFTER_SECONDS = 15

BEAT = """
INSERT INTO live_consolebeat (id, beat_at) VALUES (%(id)s, now())
ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at
"""
FORGET_GONE = "DELETE FROM live_consolebeat WHERE beat_at < now() - interval '1 hour'"

logger = logging.getLogger("slipway.live")


_stopped = threading.Event()


def start_beating() -> None:
    threading.Thread(target=_beat_until_stopped, name="beat", daemon=True).start()


def stop_beating() -> None:
    """Stop for good, before a database that belongs to this process is taken away."""
    _stopped.set()


def _beat_until_stopped() -> None:
    process_id = new_id()
    while not _stopped.is_set():
        try:
            with psycopg.connect(conninfo(), autocommit=True) as connection:
                connection.execute(FORGET_GONE)
                while not _stopped.is_set():
                    connection.execute(BEAT, {"id": process_id})
                    _stopped.wait(BEAT_SECONDS)
        except psycopg.Error as error:
            if not _stopped.is_set():
                logger.warning("could not write the console's heartbeat: %s", error)
            _stopped.wait(BEAT_SECONDS)
