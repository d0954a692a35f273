"""The presence of runners: the only place that decides whether one is ONLINE, and announces a change.

A hello or any other request makes a runner ONLINE. It is OFFLINE when it said goodbye, or a minute after its
last request or heartbeat. Jobs do not depend on it: leases are trusted, not the status of a runner.
"""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import DurationField, Q, Value
from django.db.models.functions import Now

from console.audit.actions import AuditAction
from console.audit.services import record
from console.live import topics
from console.live.publish import publish_on_commit
from console.runners.models import Runner, RunnerStatus
from runner.protocol import RunnerFacts

#: A runner asks for work every 30 s at the latest, so this is two missed requests.
OFFLINE_AFTER = timedelta(seconds=60)
#: Contact is written this often at most, since runners say something many times a second.
NOTED_EVERY = timedelta(seconds=10)
#: A claim request is held for 30 s at most. One that was sent before a goodbye and answered after it is no
#: sign of life; a later request is: another process works with the same credential.
LATE_REQUEST = timedelta(seconds=30)

#: The length to which a start's id is kept and compared.
START_ID_CHARS = 64


def arrive(runner: Runner, facts: RunnerFacts) -> list[str]:
    """Set the fields that a hello changes, and return their names."""
    runner.status, runner.last_contact_at, runner.stopped_at = RunnerStatus.ONLINE, Now(), None
    fields = ["status", "last_contact_at", "stopped_at"]
    if not facts.start_id:
        # Not a start: a check, or a rotation beside a runner at work. Or a runner that never says goodbye.
        return fields
    runner.start_id = facts.start_id[:START_ID_CHARS]
    return [*fields, "start_id"]


@dataclass(frozen=True, slots=True)
class Presence:
    """A runner's presence before the present request."""

    status: str
    silent_for: timedelta | None

    @property
    def is_noted(self) -> bool:
        """Tell whether the contact was noted a moment ago."""
        return (
            self.status == RunnerStatus.ONLINE
            and self.silent_for is not None
            and self.silent_for <= NOTED_EVERY
        )


def note_contact(*, runner_id: UUID, organization_id: UUID) -> None:
    runner = Runner.objects.filter(pk=runner_id)
    # Decided by the statement, so that a goodbye that arrives right now wins.
    not_late = Q(stopped_at=None) | Q(stopped_at__lt=_ago(LATE_REQUEST))
    came_back = runner.filter(not_late, status=RunnerStatus.OFFLINE).update(
        status=RunnerStatus.ONLINE, stopped_at=None, last_contact_at=Now()
    )
    if came_back:
        publish_on_commit(topics.organization(organization_id, "runners"))
    else:
        runner.filter(status=RunnerStatus.ONLINE).update(last_contact_at=Now())


@transaction.atomic
def note_goodbye(*, runner_id: UUID, start_id: str) -> None:
    """This start of the runner has ended in good order. The claims that it may hold end with their leases.

    The late goodbye of a start that was followed by another changes nothing: that one lives.
    """
    same_start = Runner.objects.filter(
        pk=runner_id, start_id=start_id[:START_ID_CHARS], status=RunnerStatus.ONLINE
    )
    if same_start.update(status=RunnerStatus.OFFLINE, stopped_at=Now()):
        _record(Runner.objects.select_related("organization").get(pk=runner_id), AuditAction.RUNNER_STOPPED)


def mark_silent_runners_offline() -> list[Runner]:
    """Mark runners from which neither a request nor a heartbeat came for a minute."""
    silent_since = _ago(OFFLINE_AFTER)
    silent = Runner.objects.filter(status=RunnerStatus.ONLINE, last_contact_at__lt=silent_since).exclude(
        claims__heartbeat_at__gte=silent_since
    )
    marked = []
    for runner in silent.select_related("organization"):
        # Compare-and-set: a request that arrives right now wins.
        if Runner.objects.filter(
            pk=runner.pk, status=RunnerStatus.ONLINE, last_contact_at=runner.last_contact_at
        ).update(status=RunnerStatus.OFFLINE):
            _record(runner, AuditAction.RUNNER_WENT_OFFLINE)
            marked.append(runner)
    return marked


def announce(runner: Runner) -> None:
    """Tell the open pages of its organization."""
    publish_on_commit(topics.organization(runner.organization_id, "runners"))


def _record(runner: Runner, action: AuditAction) -> None:
    record(organization=runner.organization, actor=None, action=action, target=runner)
    announce(runner)


def _ago(duration: timedelta) -> object:
    return Now() - Value(duration, output_field=DurationField())
