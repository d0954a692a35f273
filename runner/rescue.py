"""Brings states that could not be saved or uploaded to the console, as soon as it takes them."""

from __future__ import annotations

import logging

from runner.client import ConsoleAway, ConsoleClient, Refused
from runner.workdir import DataDirectory

logger = logging.getLogger(__name__)


def deliver_rescued_states(data: DataDirectory, client: ConsoleClient) -> None:
    """One try for each; what the console does not take stays on this machine."""
    for job_id, claim_id, file in data.rescued_states():
        try:
            client.upload_errored_state(job_id, claim_id, file.read_bytes(), give_up=lambda: True)
        except ConsoleAway:
            return
        except Refused as error:
            logger.error("The console does not take the unsaved state %s: %s", file, error)
        else:
            file.unlink()
            logger.warning("An unsaved state of job %s is now kept by the console.", job_id)
