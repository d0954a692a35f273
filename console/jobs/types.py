"""Every job type in one table: how it is tried, what it may change, how people and the API meet it."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from runner.protocol import JobType


class RequestedOn(Enum):
    """The object on which a person requests a job; the API has one endpoint for each."""

    SPEC = "spec"
    PLAN = "plan"
    IDENTITY = "identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """One job type. A new type is a row of `KINDS`, its steps in the runner, and its tests."""

    #: For people, on pages and in messages.
    name: str
    #: How often it is tried again automatically.
    max_retries: int
    #: How long one attempt may take.
    timeout_seconds: int
    #: The `action` that a cloud's trust policy sees in the subject of its attempts' tokens.
    cloud_action: str
    #: A type that changes infrastructure is never tried again automatically: a person decides.
    changes_infrastructure: bool = False
    #: The phases of an attempt in order, so that the job's page can show what is still to come.
    phases: str = "prepare"
    #: The phases of an attempt that applies a reviewed plan, where a job of this type can have one.
    phases_with_plan: str = ""
    #: None while nothing requests it: then the pages and the API do not offer it either.
    requested_on: RequestedOn | None = None

    @property
    def is_listed(self) -> bool:
        """Return whether filters offer it: only a type that can be requested has jobs."""
        return self.requested_on is not None


_HOUR = 3_600

KINDS: Final[dict[JobType, JobKind]] = {
    JobType.PLAN: JobKind(
        name="Plan",
        max_retries=2,
        timeout_seconds=_HOUR,
        cloud_action="plan",
        phases="prepare init plan upload",
        requested_on=RequestedOn.SPEC,
    ),
    JobType.DEPLOY: JobKind(
        name="Apply",
        max_retries=0,
        timeout_seconds=4 * _HOUR,
        cloud_action="deploy",
        changes_infrastructure=True,
        phases="prepare init plan apply",
        phases_with_plan="prepare init download apply",
        requested_on=RequestedOn.PLAN,
    ),
    JobType.DESTROY: JobKind(
        name="Destroy",
        max_retries=0,
        timeout_seconds=4 * _HOUR,
        cloud_action="destroy",
        changes_infrastructure=True,
        phases="prepare init plan apply",
        phases_with_plan="prepare init download apply",
        requested_on=RequestedOn.SPEC,
    ),
    JobType.CONNECTION_TEST: JobKind(
        name="Connection test",
        max_retries=2,
        timeout_seconds=300,
        cloud_action="test",
        phases="prepare test",
        requested_on=RequestedOn.IDENTITY,
    ),
    JobType.FETCH_RESOURCES: JobKind(
        name="Resource scan",
        max_retries=3,
        timeout_seconds=900,
        cloud_action="test",
        phases="prepare fetch",
        requested_on=RequestedOn.IDENTITY,
    ),
    # The protocol names the following types; nothing requests them yet.
    JobType.DRIFT_CHECK: JobKind(
        name="Drift check", max_retries=2, timeout_seconds=_HOUR, cloud_action="plan"
    ),
    JobType.DEPLOY_WORKER: JobKind(
        name="Runner deployment",
        max_retries=0,
        timeout_seconds=_HOUR,
        cloud_action="deploy",
        changes_infrastructure=True,
    ),
    JobType.UPDATE_WORKER: JobKind(
        name="Runner update",
        max_retries=0,
        timeout_seconds=_HOUR,
        cloud_action="deploy",
        changes_infrastructure=True,
    ),
    JobType.DESTROY_WORKER: JobKind(
        name="Runner removal",
        max_retries=0,
        timeout_seconds=_HOUR,
        cloud_action="destroy",
        changes_infrastructure=True,
    ),
}

#: The types that may have changed infrastructure once they have started.
CHANGING_TYPES: Final = tuple(type for type, kind in KINDS.items() if kind.changes_infrastructure)


def kind_of(type: str) -> JobKind:
    return KINDS[JobType(type)]


def types_requested_on(target: RequestedOn) -> tuple[JobType, ...]:
    return tuple(type for type, kind in KINDS.items() if kind.requested_on is target)
