"""Reading the audit record: an organization's events, filtered, in pages that all cost the same."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from console.audit.models import AuditEvent
from console.ids import first_id_at

#: One page searches at most this many events: a rare action does not cost a scan of all time, and no third
#: index has to be written at every move of a job.
SEARCHED_EVENTS = 20_000
#: How many events an export reads at a time.
EXPORT_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a reader; empty ones let everything through."""

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
class Page:
    """A page of events, and the id below which the next one begins."""

    events: list[AuditEvent]
    next_before: UUID | None = None
    #: Set when the page ends because enough was searched, not because it is full.
    searched_back_to: datetime | None = None


def events_of(organization_id: UUID, filters: Filters, *, after: UUID | None = None, limit: int = 50) -> Page:
    """Return the newest events that match, from below the id `after`."""
    stretch = _stretch(organization_id, filters, after=after)
    if filters.target_id is not None:
        return _cut_page(list(stretch.filter(filters.condition)[: limit + 1]), limit)
    floor = _floor(stretch)
    matching = stretch.filter(filters.condition)
    if floor is not None:
        matching = matching.filter(pk__gte=floor.pk)
    page = _cut_page(list(matching[: limit + 1]), limit)
    if page.next_before is None and floor is not None:
        return Page(page.events, next_before=floor.pk, searched_back_to=floor.at)
    return page


def every_event(organization_id: UUID, filters: Filters) -> Iterator[list[AuditEvent]]:
    """Return all that match, newest first, in batches: an export holds no transaction open for long."""
    after: UUID | None = None
    while True:
        page = events_of(organization_id, filters, after=after, limit=EXPORT_BATCH)
        yield page.events
        if page.next_before is None:
            return
        after = page.next_before


def _stretch(organization_id: UUID, filters: Filters, *, after: UUID | None) -> "QuerySet[AuditEvent]":
    events = AuditEvent.objects.filter(organization_id=organization_id)
    if filters.target_id is not None:
        events = events.filter(target_id=filters.target_id)
    if filters.since is not None:
        events = events.filter(pk__gte=first_id_at(filters.since))
    if filters.before is not None:
        events = events.filter(pk__lt=first_id_at(filters.before))
    if after is not None:
        events = events.filter(pk__lt=after)
    return events.order_by("-pk")


def _floor(stretch: "QuerySet[AuditEvent]") -> AuditEvent | None:
    """Return the last event that one page searches; None when there are fewer."""
    return stretch.only("pk", "at")[SEARCHED_EVENTS : SEARCHED_EVENTS + 1].first()


def _cut_page(events: list[AuditEvent], limit: int) -> Page:
    more = len(events) > limit
    return Page(events[:limit], next_before=events[limit - 1].pk if more else None)
