"""States that Terraform could not save: pushed, uploaded to the console, or kept on this machine."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from runner.attempt import Attempt
from runner.client import ConsoleAway, ConsoleClient, Refused, errored_state_path
from runner.protocol import ERRORED_STATE, LogLevel
from runner.terraform import commands
from runner.terraform.workdir import DataDirectory

logger = logging.getLogger(__name__)


def save_errored_state(attempt: Attempt) -> None:
    """Push the file that Terraform writes when it could not save the state."""
    errored = attempt.workdir.configuration / ERRORED_STATE
    if not _is_complete(errored):
        return _keep_interrupted_save(attempt, errored)
    try:
        attempt.document(commands.state_push_args(file=errored))
    except Exception as error:
        attempt.log.write(
            f"Terraform could not save the state, and neither could the runner ({error}). "
            f"{_keep_state(attempt, errored, errored.read_bytes())}",
            LogLevel.ERROR,
        )
    else:
        errored.unlink()
        attempt.log.write(
            "Terraform could not save the state at first; the runner has pushed it.", LogLevel.WARN
        )


def _is_complete(errored: Path) -> bool:
    """Return False for the empty file that Terraform leaves on a full disk."""
    try:
        json.loads(errored.read_bytes())
    except (OSError, ValueError):
        return False
    return True


def _keep_interrupted_save(attempt: Attempt, errored: Path) -> None:
    """Keep the state of a save that was cut off. Terraform's lock may remain, so nothing is pushed."""
    state = attempt.equipment.relay.unsaved(attempt.marker)
    if state is not None:
        message = f"Terraform could save the state nowhere. {_keep_state(attempt, errored, state)}"
        attempt.log.write(message, LogLevel.ERROR)
    elif errored.exists():
        errored.unlink()
        attempt.log.write(
            "Terraform could save the state nowhere: its last changes are lost.", LogLevel.ERROR
        )


def _keep_state(attempt: Attempt, errored: Path, state: bytes) -> str:
    """Keep the state with the job, or on this machine until the console accepts it; returns what to do."""
    claim, path = attempt.claim, errored_state_path(attempt.claim.job_id, attempt.claim.claim_id)
    older = "Until then plans start from an older state."
    try:
        attempt.client.upload_errored_state(
            claim.job_id, claim.claim_id, state, give_up=attempt.stop.requested
        )
    except (Refused, ConsoleAway) as error:
        remedy = _keep_on_machine(attempt, errored, state, path)
        return f"The console did not accept it either ({error}). {remedy} {older}"
    errored.unlink(missing_ok=True)
    return (
        f"It is kept with this job: download it from {attempt.equipment.settings.console_url}{path}, and "
        f"push it with `terraform state push errored.tfstate` first of all. {older}"
    )


def _keep_on_machine(attempt: Attempt, errored: Path, state: bytes, path: str) -> str:
    name, claim = attempt.equipment.name, attempt.claim
    try:
        if not _is_complete(errored):
            errored.write_bytes(state)
        file = attempt.equipment.data.rescue(errored, job_id=claim.job_id, claim_id=claim.claim_id)
    except OSError as error:
        errored.unlink(missing_ok=True)
        return f"Runner {name} cannot keep it ({error.strerror}): its last changes are lost."
    return (
        f"Runner {name} keeps it as {file}, and uploads it to {path} when it can. Push it with "
        "`terraform state push` first."
    )


def rescue_state(attempt: Attempt) -> None:
    """Keep a state that no step has dealt with: it is uploaded once the report is made."""
    errored = attempt.workdir.configuration / ERRORED_STATE
    if errored.exists():
        claim = attempt.claim
        file = attempt.equipment.data.rescue(errored, job_id=claim.job_id, claim_id=claim.claim_id)
        attempt.log.write(
            f"Terraform could not save the state. Runner {attempt.equipment.name} keeps it as {file}, and "
            f"uploads it to {errored_state_path(claim.job_id, claim.claim_id)}.",
            LogLevel.ERROR,
        )


def deliver_rescued_states(data: DataDirectory, client: ConsoleClient) -> None:
    """Try once for each; a state that the console does not accept stays on this machine."""
    for job_id, claim_id, file in data.rescued_states():
        try:
            client.upload_errored_state(job_id, claim_id, file.read_bytes(), give_up=lambda: True)
        except ConsoleAway:
            return
        except Refused as error:
            logger.error("The console does not accept the unsaved state %s: %s", file, error)
        else:
            file.unlink()
            logger.warning("An unsaved state of job %s is now kept by the console.", job_id)
