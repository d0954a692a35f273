"""The last word of a runner that stops in good order."""

from __future__ import annotations

import logging
import threading

from runner.client import ConsoleClient
from runner.protocol import Goodbye, RunnerFacts

logger = logging.getLogger(__name__)

#: A console that is away delays the end by so much at most. Without the word it waits for a minute.
GOODBYE_SECONDS = 2.0


def say_goodbye(client: ConsoleClient, facts: RunnerFacts) -> None:
    """Say it once, after the last report, and go, whatever comes of it."""
    # In a thread, since no timeout of a request covers the look-up of the console's name.
    saying = threading.Thread(target=_say, args=(client, facts.start_id), name="goodbye", daemon=True)
    saying.start()
    saying.join(GOODBYE_SECONDS)


def _say(client: ConsoleClient, start_id: str) -> None:
    try:
        client.goodbye(Goodbye(start_id=start_id), timeout=GOODBYE_SECONDS)
    except Exception as error:  # such as a console that does not know the word, or that is away
        logger.debug("The goodbye was not taken: %s", error)
