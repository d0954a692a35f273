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


def start_beating() -> None:
    threading.Thread(target=_beat_forever, name="beat", daemon=True).start()


def _beat_forever() -> None:
    process_id, pause = new_id(), threading.Event()
    while True:
        try:
            with psycopg.connect(conninfo(), autocommit=True) as connection:
                connection.execute(FORGET_GONE)
                while True:
                    connection.execute(BEAT, {"id": process_id})
                    pause.wait(BEAT_SECONDS)
        except psycopg.Error as error:
            logger.warning("could not write the console's heartbeat: %s", error)
            pause.wait(BEAT_SECONDS)
