"""The places where other packages take part in a job's life. Each package registers in its `joins.py`.

`docs/life-of-a-job.md` names each hook at the step where it runs. The order in which hooks run is the order
of INSTALLED_APPS, and nothing may depend on it: two packages that give the same field are refused.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from console.jobs.models import Job
from runner.protocol import FINAL_STATUSES, JobStatus, JobType
from specs.models import Spec


@dataclass(frozen=True, slots=True)
class Waiting:
    """The reason why a job does not progress, in one sentence, and the remedy."""

    reason: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """A job that has just become final."""

    #: As the ending has left it: status, result, error code and message are final.
    job: Job
    #: Values of outputs that the runner reports beside its result, because they are only stored sealed.
    sensitive_outputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def result(self) -> dict[str, Any]:
        return self.job.result or {}


class BeforeRequest(Protocol):
    """Refuse a job that is requested for a Spec, by raising."""

    def __call__(self, spec: Spec, snapshot: dict[str, Any], /) -> None: ...


class SnapshotFields(Protocol):
    """Return fields of the snapshot that a Spec's next job carries, such as `backend`."""

    def __call__(self, spec: Spec, /) -> dict[str, Any]: ...


class BeforeRetry(Protocol):
    """Refuse to retry a job that has ended, by raising."""

    def __call__(self, job: Job, /) -> None: ...


class ClaimFields(Protocol):
    """Return fields of the protocol's Claim, such as `plan`. A refusal fails the job before it starts."""

    def __call__(self, job: Job, claim_id: UUID, /) -> dict[str, Any]: ...


class BeforeStart(Protocol):
    """Refuse the start of a job, by raising, in the transaction that moves it to PROCESSING."""

    def __call__(self, job: Job, /) -> None: ...


class OnEnd(Protocol):
    """React to a job's end, in the transaction that makes it final. Raising undoes the ending."""

    def __call__(self, end: JobEnd, /) -> None: ...


class OnAttemptLost(Protocol):
    """React to an attempt that was taken from its runner, final or queued again, after that is committed.

    An attempt is taken when its lease ends, when it ignores its timeout, and by a forced cancel.
    """

    def __call__(self, claim_id: UUID, /) -> None: ...


class WaitingReason(Protocol):
    """Return why an active job waits, when this package knows."""

    def __call__(self, job: Job, /) -> Waiting | None: ...


@dataclass(frozen=True, slots=True)
class EndHook:
    """One registration of `on_end`: the hook, and the endings that it is called for."""

    hook: OnEnd
    types: frozenset[JobType]
    statuses: frozenset[JobStatus]
    needs: Callable[[dict[str, Any]], bool] | None

    def is_for(self, status: str, result: dict[str, Any]) -> bool:
        return status in self.statuses and (self.needs is None or self.needs(result))


before_request: list[BeforeRequest] = []
snapshot_fields: list[SnapshotFields] = []
before_retry: defaultdict[str, list[BeforeRetry]] = defaultdict(list)
claim_fields: list[ClaimFields] = []
before_start: defaultdict[str, list[BeforeStart]] = defaultdict(list)
end_hooks: list[EndHook] = []
on_attempt_lost: list[OnAttemptLost] = []
waiting_reasons: list[WaitingReason] = []


def on_end(
    hook: OnEnd,
    *,
    types: Sequence[JobType] = tuple(JobType),
    statuses: Sequence[JobStatus] = tuple(FINAL_STATUSES),
    needs: Callable[[dict[str, Any]], bool] | None = None,
) -> EndHook:
    """Call the hook for each job of these types that ends with one of these statuses, however it ends.

    `needs` looks at the result alone and tells which endings concern the hook at all. An ending that concerns
    no hook is one statement, so a hook for a frequent ending should say what it needs.
    A job that is queued again has not ended: see `on_attempt_lost`.
    """
    registered = EndHook(hook, frozenset(types), frozenset(statuses), needs)
    end_hooks.append(registered)
    return registered


def types_with_start_hooks() -> list[str]:
    return [type for type, hooks in before_start.items() if hooks]


def types_with_end_hooks(status: str, result: dict[str, Any]) -> list[str]:
    """The types of which such an ending concerns a hook: for them one statement is not enough."""
    return sorted({type for hook in end_hooks if hook.is_for(status, result) for type in hook.types})


class DuplicateField(ValueError):
    """Two packages give the same field: one of them would be lost."""


def add_fields(fields: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Both, or a refusal when they share a field."""
    if shared := fields.keys() & more.keys():
        raise DuplicateField(f"Two packages give the same field: {', '.join(sorted(shared))}.")
    return fields | more
