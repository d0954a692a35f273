"""The audit page and its exports: who did what, for the admins of an organization."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from console.accounts.access import organization_to_audit
from console.accounts.models import Organization
from console.audit.actions import RENAMED, TARGET_KINDS, AuditAction
from console.audit.models import AuditEvent
from console.audit.selectors import Filters, events_of, every_event
from console.audit.services import record
from console.errors import BadInput, NotFound
from console.jobs.models import Job
from console.live.threads import stream_texts
from console.pages.frame import PageRequest, signed_in
from specs.models import Spec

COLUMNS = ("at", "actor_kind", "actor", "action", "target_kind", "target_id", "data")
#: A cell that begins with one of these is a formula to a spreadsheet.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@signed_in
def audit(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_audit(request.user, org)
    filters = _filters(request)
    page = events_of(organization.pk, filters, after=_uuid(request.GET.get("after", ""), "after"))
    query = _query(request)
    names = names_of_targets(organization, page.events)
    context = {
        "page": page,
        "rows": [(event, *names.get(event.target_id, ("", ""))) for event in page.events],
        "filters": query,
        "actions": list(AuditAction),
        "kinds": TARGET_KINDS,
        "query": urlencode(query),
        "older": urlencode({**query, "after": str(page.next_before)}) if page.next_before else "",
        "paged": "after" in request.GET,
    }
    return render(request, "audit/audit.html", context)


@signed_in
def export(request: PageRequest, org: str, form: str) -> StreamingHttpResponse:
    """Export everything that the filters let through, and record the export itself."""
    organization = organization_to_audit(request.user, org)
    if form not in ("csv", "json"):
        raise NotFound
    filters = _filters(request)
    record(
        organization=organization,
        actor=request.user,
        action=AuditAction.AUDIT_EXPORTED,
        target=organization,
        form=form,
        filters=_query(request),
    )
    batches = every_event(organization.pk, filters)
    texts, kind = (_csv(batches), "text/csv") if form == "csv" else (_json(batches), "application/json")
    answer = StreamingHttpResponse(stream_texts(texts), content_type=f"{kind}; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{org}-audit.{form}"'
    return answer


def names_of_targets(organization: Organization, events: list[AuditEvent]) -> dict[UUID, tuple[str, str]]:
    """Return the names and addresses of the jobs and Specs that these events are about."""
    ids = {event.target_id for event in events}
    slug = organization.slug
    jobs = Job.objects.filter(pk__in=ids).values_list("pk", "type", "number")
    specs = Spec.objects.filter(pk__in=ids).values_list("pk", "name", "slug")
    names = {pk: (f"{type} #{number}", reverse("job", args=[slug, number])) for pk, type, number in jobs}
    return names | {pk: (name, reverse("spec", args=[slug, spec])) for pk, name, spec in specs}


def _filters(request: PageRequest) -> Filters:
    query = request.GET
    until = _day(query.get("until", ""), "until")
    return Filters(
        actor=query.get("actor", "").strip(),
        action=_action(query.get("action", "")),
        target_kind=query.get("kind", "") if query.get("kind") in TARGET_KINDS else "",
        target_id=_uuid(query.get("target", ""), "target"),
        since=_day(query.get("since", ""), "since"),
        before=until + timedelta(days=1) if until else None,
    )


def _query(request: PageRequest) -> dict[str, str]:
    names = ("actor", "action", "kind", "target", "since", "until")
    return {name: request.GET[name].strip() for name in names if request.GET.get(name, "").strip()}


def _action(text: str) -> str:
    """Read a name as people type or bookmarked it: a whole action, its first word, or an earlier name."""
    name = text.strip()
    return RENAMED.get(name, name)


def _day(text: str, field: str) -> datetime | None:
    if not text.strip():
        return None
    try:
        day = date.fromisoformat(text.strip())
    except ValueError as error:
        raise BadInput(f"{field}: expected a date such as 2027-01-31", field=field) from error
    if day == date.max:
        raise BadInput(f"{field}: expected an earlier date", field=field)
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _uuid(text: str, field: str) -> UUID | None:
    if not text.strip():
        return None
    try:
        return UUID(text.strip())
    except ValueError as error:
        raise BadInput(f"{field}: expected an id", field=field) from error


def _row(event: AuditEvent) -> dict[str, Any]:
    return {
        "at": event.at.isoformat(),
        "actor_kind": event.actor_kind,
        "actor": event.actor_name,
        "action": event.action,
        "target_kind": event.target_kind,
        "target_id": str(event.target_id),
        "data": event.data,
    }


def _csv(batches: Iterator[list[AuditEvent]]) -> Iterator[str]:
    yield _csv_lines([COLUMNS])
    for events in batches:
        rows = [{**_row(event), "data": json.dumps(event.data, ensure_ascii=False)} for event in events]
        yield _csv_lines([_escape_formula(str(row[name])) for name in COLUMNS] for row in rows)


def _csv_lines(rows: Iterable[Iterable[str]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue()


def _json(batches: Iterator[list[AuditEvent]]) -> Iterator[str]:
    """One array, one event on each line."""
    before = "["
    for events in filter(None, batches):
        yield before + "\n" + ",\n".join(json.dumps(_row(event), ensure_ascii=False) for event in events)
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"


def _escape_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA) else cell
