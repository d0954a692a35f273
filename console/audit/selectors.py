"""Reading the audit record: an organization's events, filtered, in pages that all cost the same."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from console.audit.models import AuditEvent
from console.ids import first_id_at

#: One page looks through at most this many events: a rare action is not searched for through all time at
#: once, and no index beside the two that exist has to be written at each job's every move.
LOOKED_THROUGH = 20_000
#: How many events an export reads at a time.
EXPORT_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reader filters by; empty parts do not filter."""

    actor: str = ""
    action: str = ""
    target_kind: str = ""
    target_id: UUID | None = None
    since: datetime | None = None
    before: datetime | None = None

    @property
    def condition(self) -> Q:
        condition = Q()
        if self.actor:
            condition &= Q(actor_name__iexact=self.actor)
        if self.action:
            # `job` means everything about jobs, `job.cancelled` exactly that.
            condition &= Q(action=self.action) | Q(action__startswith=f"{self.action}.")
        if self.target_kind:
            condition &= Q(target_kind=self.target_kind)
        return condition


@dataclass(frozen=True, slots=True)
class Found:
    """A page of events, and where to go on: after its last event, or after the last that was looked at."""

    events: list[AuditEvent]
    next_before: UUID | None = None
    #: Set when the page ends because enough was looked through, not because it is full.
    looked_back_to: datetime | None = None


def events_of(organization_id: UUID, wanted: Wanted, *, after: UUID | None = None, limit: int = 50) -> Found:
    """The newest events that match, from below the id `after`."""
    stretch = _stretch(organization_id, wanted, after=after)
    if wanted.target_id is not None:
        return _page(list(stretch.filter(wanted.condition)[: limit + 1]), limit)
    floor = _floor(stretch)
    matching = stretch.filter(wanted.condition)
    if floor is not None:
        matching = matching.filter(pk__gte=floor.pk)
    found = _page(list(matching[: limit + 1]), limit)
    if found.next_before is None and floor is not None:
        return Found(found.events, next_before=floor.pk, looked_back_to=floor.at)
    return found


def every_event(organization_id: UUID, wanted: Wanted) -> Iterator[list[AuditEvent]]:
    """All that match, newest first, a batch at a time: an export holds no transaction open for long."""
    after: UUID | None = None
    while True:
        found = events_of(organization_id, wanted, after=after, limit=EXPORT_BATCH)
        yield found.events
        if found.next_before is None:
            return
        after = found.next_before


def _stretch(organization_id: UUID, wanted: Wanted, *, after: UUID | None) -> "QuerySet[AuditEvent]":
    events = AuditEvent.objects.filter(organization_id=organization_id)
    if wanted.target_id is not None:
        events = events.filter(target_id=wanted.target_id)
    if wanted.since is not None:
        events = events.filter(pk__gte=first_id_at(wanted.since))
    if wanted.before is not None:
        events = events.filter(pk__lt=first_id_at(wanted.before))
    if after is not None:
        events = events.filter(pk__lt=after)
    return events.order_by("-pk")


def _floor(stretch: "QuerySet[AuditEvent]") -> AuditEvent | None:
    """The last event that one page looks at; None when there are fewer."""
    return stretch.only("pk", "at")[LOOKED_THROUGH : LOOKED_THROUGH + 1].first()


def _page(events: list[AuditEvent], limit: int) -> Found:
    more = len(events) > limit
    return Found(events[:limit], next_before=events[limit - 1].pk if more else None)
