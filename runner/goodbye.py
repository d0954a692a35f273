"""The message of a runner that stops in good order."""

from __future__ import annotations

import logging
import threading

from runner.client import ConsoleClient
from runner.protocol import Goodbye, RunnerFacts

logger = logging.getLogger(__name__)

#: The most that an absent console delays the end. Without the message it waits for a minute.
GOODBYE_SECONDS = 2.0


def send_goodbye(client: ConsoleClient, facts: RunnerFacts) -> None:
    """Send it once, after the last report, and ignore errors."""
    # In a thread, since no timeout of a request covers the lookup of the console's name.
    sending = threading.Thread(target=_send, args=(client, facts.start_id), name="goodbye", daemon=True)
    sending.start()
    sending.join(GOODBYE_SECONDS)


def _send(client: ConsoleClient, start_id: str) -> None:
    try:
        client.goodbye(Goodbye(start_id=start_id), timeout=GOODBYE_SECONDS)
    except Exception as error:  # such as a console that does not know the message, or that is away
        logger.debug("The goodbye was not accepted: %s", error)
