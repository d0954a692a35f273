"""Keeps an attempt's lease alive, and brings back what the console has to say meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from runner import clock
from runner.client import ConsoleAway, ConsoleClient, CredentialRefused, Refused, StaleClaim
from runner.protocol import CancelReason, Claim, HeartbeatAnswer, HeartbeatRequest
from runner.stopping import Lease, Stop

logger = logging.getLogger(__name__)

#: A cancel has to reach Terraform within 3 s, and a beat writes one narrow row. Short leases beat faster.
BEAT_SECONDS = 2.0
#: By then an attempt knows that its final report was accepted.
_REPORTED_SECONDS = 1.0


class Heartbeat:
    """Beats from a thread of its own between `start` and `stop`."""

    def __init__(
        self,
        *,
        client: ConsoleClient,
        claim: Claim,
        lease: Lease,
        stop: Stop,
        on_renewal: Callable[[], None],
        on_drain: Callable[[], None],
    ) -> None:
        self._client = client
        self._claim = claim
        self._lease = lease
        self._stop = stop
        self._on_renewal = on_renewal
        self._on_drain = on_drain
        self._interval = min(BEAT_SECONDS, claim.lease_seconds / 6)
        self._ended = threading.Event()
        #: Whether the final report was accepted: a beat that was under way is then refused, as it should be.
        self.is_over = False
        self._thread = threading.Thread(target=self._beat_repeatedly, name="heartbeat", daemon=True)

    def first_beat(self) -> None:
        """Make sure of the claim before anything runs: a held claim request can be old when answered.

        Raises what the console says; without an answer there is nothing to start from.
        """
        while not self._ended.is_set():
            self._stop.check()
            try:
                return self._beat()
            except ConsoleAway:
                self._ended.wait(self._interval)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _beat_repeatedly(self) -> None:
        while not self._ended.wait(self._interval):
            try:
                self._beat()
            except (StaleClaim, CredentialRefused) as refusal:
                self._stop.lose_claim()
                self._ended.wait(_REPORTED_SECONDS)
                if not self.is_over:
                    logger.warning("Job %d is no longer ours: %s", self._claim.job_number, refusal)
                return
            except ConsoleAway:
                pass  # The lease runs on; what waits for Terraform asks `Stop`, which looks at it.
            except Refused as refusal:
                logger.error("A heartbeat of job %d was refused: %s", self._claim.job_number, refusal)

    def _beat(self) -> None:
        sent_at = clock.now()
        answer = self._client.heartbeat(
            self._claim.job_id,
            HeartbeatRequest(claim_id=self._claim.claim_id),
            timeout=max(1.0, self._interval * 2),
        )
        # Counted from before the request: the console's own clock for it cannot have started earlier.
        self._lease.renew(sent_at=sent_at, lease_seconds=answer.lease_seconds)
        self._on_renewal()
        self._handle_answer(answer)

    def _handle_answer(self, answer: HeartbeatAnswer) -> None:
        if answer.cancel == CancelReason.TIMEOUT:
            self._stop.time_out()
        elif answer.cancel:
            self._stop.cancel()
        if answer.drain:
            self._on_drain()
