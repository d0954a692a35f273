"""The runner's life: claim, attempt, again, in each slot, until told to stop."""

from __future__ import annotations

import logging
import threading
import uuid

from runner.attempt import Attempt, Equipment
from runner.client import ConsoleAway, CredentialRefused, Refused, UnreadableClaim
from runner.execution import run_attempt
from runner.protocol import Claim, ClaimRequest, JobStatus, StatusReport
from runner.runner_credential import RunnerCredential
from runner.steps import STEPS
from runner.unsaved_state import deliver_rescued_states

logger = logging.getLogger(__name__)

#: The time for which the console holds a claim request: below its limit of 30 s, which proxies share.
CLAIM_WAIT_SECONDS = 25.0
#: After a refusal that is not about this runner, so that a broken console is not hammered.
REFUSED_WAIT_SECONDS = 5.0

JOB_TYPES = [str(kind) for kind in STEPS]


class Runner:
    """Runs the slots. `interrupt` may be called from a signal handler."""

    def __init__(self, equipment: Equipment) -> None:
        self._equipment = equipment
        self._once = equipment.settings.once
        self._credential = RunnerCredential(equipment.settings, equipment.client)
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._lock = threading.Lock()
        self._attempts: set[Attempt] = set()
        self._signals: list[int] = []
        self._urgency = 0
        self._is_draining = False
        self.credential_refused = False

    def run(self) -> None:
        """Serve until there is no more to do; returns with no attempt under way."""
        slots = 1 if self._once else self._equipment.settings.slots
        threads = [
            threading.Thread(target=self._serve, name=f"slot-{number}", daemon=True)
            for number in range(1, slots + 1)
        ]
        deliver_rescued_states(self._equipment.data, self._equipment.client)
        for thread in threads:
            thread.start()
        handled = 0
        while any(thread.is_alive() for thread in threads) and not self._is_done():
            self._woken.wait(timeout=1.0)
            self._woken.clear()
            if self._urgency > handled:
                handled = self._urgency
                self._handle_interrupt(kill=handled > 1)

    def interrupt(self, number: int) -> None:
        """Interrupt Terraform at the first signal, and kill it at a second one of the same number.

        A SIGTERM after a SIGINT is no repeat: a Ctrl-C reaches a runner directly, and once more through
        the program that started it and now stops it.
        """
        self._signals.append(number)
        self._urgency = 2 if self._signals.count(number) > 1 else max(1, self._urgency)
        self._woken.set()

    def drain(self) -> None:
        """Log a drain: the console gives this runner no jobs until it ends, and the runner keeps running."""
        if not self._is_draining:
            logger.info(
                "The console drains this runner: it finishes its jobs, and gets no more until the drain ends."
            )
        self._is_draining = True

    def _handle_interrupt(self, *, kill: bool) -> None:
        self._stopping.set()
        with self._lock:
            attempts = list(self._attempts)
        logger.info("Stopping; %d jobs under way.", len(attempts))
        for attempt in attempts:
            if kill:
                attempt.stop.kill()
            else:
                attempt.stop.stop_runner()

    def _is_done(self) -> bool:
        # A slot that waits for a claim is left behind: what the console gives it in this very moment
        # returns to the queue with the lease, because nothing of it has run.
        with self._lock:
            return self._stopping.is_set() and not self._attempts

    def _serve(self) -> None:
        while not self._stopping.is_set():
            self._credential.rotate_when_old(self._equipment.facts)
            claim = self._claim()
            if claim is None:
                self._equipment.relay.stop_when_idle()
                continue
            self._is_draining = False
            self._attempt(claim)
            if self._once:
                break
        self._woken.set()

    def _claim(self) -> Claim | None:
        pools = list(self._equipment.settings.pools)
        # One key until there is an answer: a claim whose answer got lost is given again, not leaked.
        request = ClaimRequest(
            claim_key=uuid.uuid4().hex, types=JOB_TYPES, wait_seconds=CLAIM_WAIT_SECONDS, pools=pools
        )
        try:
            return self._equipment.client.claim(request, give_up=self._stopping.is_set)
        except CredentialRefused as error:
            logger.error("The console no longer accepts this runner: %s", error)
            self.credential_refused = True
            self._stopping.set()
        except UnreadableClaim as error:
            self._return(error)
        except Refused as error:
            logger.error("The console refused a claim: %s", error)
            self._stopping.wait(REFUSED_WAIT_SECONDS)
        except ConsoleAway:
            pass  # Stopping.
        return None

    def _return(self, unreadable: UnreadableClaim) -> None:
        """Report it as failed: otherwise the job would return with each expired lease, for ever."""
        logger.error("A job cannot be understood: %s", unreadable)
        report = StatusReport(
            claim_id=unreadable.claim_id,
            status=JobStatus.FAILED,
            error_code="invalid_message",
            error_message=f"Runner {self._equipment.name} does not understand this job "
            f"({unreadable.detail}). Update the older of the runner and the console.",
        )
        try:
            self._equipment.client.report(unreadable.job_id, report, give_up=self._stopping.is_set)
        except (Refused, ConsoleAway) as error:
            logger.error("The console does not take the job back: %s", error)
            self._stopping.wait(REFUSED_WAIT_SECONDS)

    def _attempt(self, claim: Claim) -> None:
        attempt = Attempt(claim, self._equipment)
        with self._lock:
            if self._stopping.is_set():
                return
            self._attempts.add(attempt)
        try:
            run_attempt(attempt, on_drain=self.drain)
            deliver_rescued_states(self._equipment.data, self._equipment.client)
        except Exception:
            # The job is reported by its lease; the slot must live on.
            logger.exception("Job %d: the attempt broke.", claim.job_number)
        finally:
            with self._lock:
                self._attempts.discard(attempt)
            self._woken.set()
