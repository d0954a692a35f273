"""The audit page: filtered, in pages, exported; long records cost no more than short ones."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from console.audit import selectors
from console.audit.actions import AuditAction
from console.audit.models import AuditEvent
from console.audit.services import record
from console.ids import first_id_at, new_id
from tests.people import Tenant
from tests.specs.editing import Browser


def events(tenant: Tenant, count: int, action: str = "thing.done") -> None:
    AuditEvent.objects.bulk_create(
        AuditEvent(
            id=new_id(), organization=tenant.organization, actor_kind="person",
            actor_name=f"person-{index % 3}",
            action=action, target_kind="spec", target_id=tenant.organization.pk, data={"number": index},
        )
        for index in range(count)
    )  # fmt: skip


def exported(tenant: Tenant, form: str, **query: Any) -> str:
    answer = Browser(tenant, tenant.admin, scripts=False).get(f"audit/export.{form}", **query)
    assert answer.status_code == 200

    async def whole() -> bytes:
        return b"".join([part async for part in answer.streaming_content])

    return asyncio.run(whole()).decode()


def test_events_are_filtered_by_who_what_about_and_when(ours: Tenant) -> None:
    events(ours, 6)
    record(
        organization=ours.organization,
        actor=ours.operator,
        action=AuditAction.SPEC_CHANGED,
        target=ours.spec,
    )
    browser = Browser(ours, ours.admin)
    today = datetime.now(UTC).date()
    for query, expected in (
        ({"actor": "Person-1"}, 2),
        ({"action": "thing"}, 6),
        ({"action": "thing.done"}, 6),
        ({"action": "thin"}, 0),
        ({"action": "spec.changed", "kind": "spec"}, 1),
        ({"action": "spec.changed", "kind": "job"}, 0),
        ({"target": str(ours.spec.pk), "action": "spec"}, 2),
        ({"action": "thing", "since": today.isoformat(), "until": today.isoformat()}, 6),
        ({"action": "thing", "until": (today - timedelta(days=1)).isoformat()}, 0),
        ({"action": "thing", "since": (today + timedelta(days=1)).isoformat()}, 0),
    ):
        assert browser.reads("audit/", **query).count("<tr data-key=") == expected, query


@pytest.mark.parametrize("query", [{"since": "yesterday"}, {"target": "x"}, {"after": "x"}])
def test_an_invalid_filter_is_refused_by_its_name(ours: Tenant, query: dict[str, str]) -> None:
    answer = Browser(ours, ours.admin).get("audit/", **query)
    assert answer.status_code == 400
    assert f"{next(iter(query))}: expected" in answer.content.decode()


def test_pages_follow_each_other_without_a_gap_or_a_repeat(ours: Tenant) -> None:
    events(ours, 120)
    numbers, after = [], None
    while True:
        page = selectors.events_of(ours.organization.pk, selectors.Filters(action="thing"), after=after)
        numbers += [event.data["number"] for event in page.events]
        after = page.next_before
        if after is None:
            break
    assert numbers == list(range(119, -1, -1))


def test_a_rare_action_is_searched_in_steps(ours: Tenant, monkeypatch: Any) -> None:
    monkeypatch.setattr(selectors, "SEARCHED_EVENTS", 20)
    events(ours, 1, "rare.event")
    events(ours, 50)
    page = Browser(ours, ours.admin).reads("audit/", action="rare")
    assert "Searched events back to" in page
    assert "Search before" in page
    assert len(list(selectors.every_event(ours.organization.pk, selectors.Filters(action="rare")))[-1]) == 1


def test_the_export_has_everything_and_is_itself_on_record(ours: Tenant) -> None:
    events(ours, 3)
    rows = list(csv.DictReader(io.StringIO(exported(ours, "csv", action="thing"))))
    assert [json.loads(row["data"])["number"] for row in rows] == [2, 1, 0]
    event = AuditEvent.objects.get(action="audit.exported")
    assert (event.actor_name, event.data["filters"]) == (
        "ours-admin",
        {"action": "thing"},
    )
    parsed = json.loads(exported(ours, "json", action="thing"))
    assert [event["data"]["number"] for event in parsed] == [2, 1, 0]
    assert json.loads(exported(ours, "json", action="none.such")) == []
    assert Browser(ours, ours.admin).get("audit/export.xml").status_code == 404


def test_a_cell_of_the_export_is_no_formula(ours: Tenant) -> None:
    AuditEvent.objects.create(
        organization=ours.organization, actor_kind="person", actor_name="=cmd()", action="thing.done",
        target_kind="spec", target_id=ours.organization.pk,
    )  # fmt: skip
    (row,) = csv.DictReader(io.StringIO(exported(ours, "csv", action="thing")))
    assert row["actor"] == "'=cmd()"


def test_an_id_of_a_moment_is_below_those_made_after_it() -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=2)
    assert first_id_at(before) < new_id() < first_id_at(datetime.now(UTC) + timedelta(seconds=1))
