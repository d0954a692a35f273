"""What rooms above this one add to a job's life. They register in their AppConfig.ready()."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from console.jobs.models import Job


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a job does not go on, in one sentence, and what a person can do about it."""

    reason: str
    remedy: str = ""


#: Called with the job in the transaction that moves it to PROCESSING; raising refuses the start.
before_start: dict[str, list[Callable[[Job], None]]] = defaultdict(list)

#: Called with a job that ended and that a person wants to try again; raising refuses it.
before_retry: dict[str, list[Callable[[Job], None]]] = defaultdict(list)

#: Called with the job and its result in the transaction that makes it SUCCESS.
on_success: dict[str, list[Callable[[Job, dict[str, Any]], None]]] = defaultdict(list)

#: Called with the job and the result that came with the report, in the transaction that makes it FAILED.
on_failure: dict[str, list[Callable[[Job, dict[str, Any]], None]]] = defaultdict(list)

#: Called with the claim's id after an attempt was taken from its runner: lost, timed out, or fenced by force.
on_lost: list[Callable[[UUID], None]] = []

#: Called with a spec and the snapshot of a job that is requested; raising refuses the request.
before_request: list[Callable[[Any, dict[str, Any]], None]] = []

#: Called with a spec; returns fields of the document that its next job will carry, such as `backend`.
snapshot_fields: list[Callable[[Any], dict[str, Any]]] = []

#: Called with a job that is not final; returns why it waits, when this room knows.
waiting_reasons: list[Callable[[Job], Waiting | None]] = []

#: Called with the job and the claim's id; returns fields of the protocol's Claim, such as `plan`. A refusal
#: fails the job before its runner hears of it.
claim_fields: list[Callable[[Job, UUID], dict[str, Any]]] = []
