"""The audit actions: one list, one tense, one document, and no name beside the list."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from console.audit.actions import RENAMED, AuditAction
from console.audit.document import DOCUMENT, document
from console.audit.models import AuditEvent
from console.ids import new_id
from console.jobs.services import cancel_job
from tests.console_app import Console
from tests.people import Tenant
from tests.specs.editing import Browser

ROOT = Path(__file__).parents[3]
#: The endings of the last word of an action.
PAST = ("ed", "kept", "written", "withdrawn", "back", "chosen", "offline")
AUDIT_MIGRATIONS = {"before": [("audit", "0004_no_lookups")], "after": [("audit", "0005_past_tense")]}


def record_old_events(tenant: Tenant) -> dict[str, str]:
    """Write one event of each earlier name, and the two cancels, as earlier releases did; by id."""
    actions = [*RENAMED, "job.cancelled", "job.requested", "spec.created"]
    events = [
        AuditEvent(
            id=new_id(),
            organization=tenant.organization,
            actor_kind="runner",
            actor_name="worker",
            action=action,
            target_kind=action.partition(".")[0],
            target_id=tenant.organization.pk,
            data={"force": False} if action == "job.cancelled" else {"claim_id": str(new_id())},
        )
        for action in actions
    ]
    AuditEvent.objects.bulk_create(events)
    return {str(event.pk): event.action for event in events}


def actions_by_id(ids: dict[str, str]) -> dict[str, str]:
    return {
        str(pk): action for pk, action in AuditEvent.objects.filter(pk__in=ids).values_list("pk", "action")
    }


def migrate(to: str) -> None:
    MigrationExecutor(connection).migrate(AUDIT_MIGRATIONS[to])


def test_old_events_are_renamed_and_named_back(ours: Tenant) -> None:
    migrate("before")
    old = record_old_events(ours)
    migrate("after")
    renamed = actions_by_id(old)
    assert renamed == {pk: str(RENAMED.get(action, action)) for pk, action in old.items()}
    assert [*renamed.values()].count("job.cancelled") == 2
    page = Browser(ours, ours.admin).reads("audit/", action="job.cancelled")
    assert page.count("<tr data-key=") == 2
    migrate("before")
    assert actions_by_id(old) == old
    migrate("after")


def test_the_record_can_only_grow_after_the_renaming_too(ours: Tenant) -> None:
    migrate("before")
    record_old_events(ours)
    migrate("after")
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgenabled FROM pg_trigger WHERE tgname = 'audit_append_only'")
        assert cursor.fetchone() == ("O",)


def test_a_filter_for_cancelled_jobs_finds_queued_and_running_ones(console: Console, ours: Tenant) -> None:
    runner = console.new_runner(ours)
    running = ours.request()
    claim = runner.take_and_start()
    cancel_job(job=running, requested_by=ours.operator)
    assert runner.report(claim, "CANCELLED").status_code == 200
    queued = ours.request()
    cancel_job(job=queued, requested_by=ours.operator)
    admin = Browser(ours, ours.admin)
    for name in ("job.cancelled", "job.cancel"):
        page = admin.reads("audit/", action=name)
        assert page.count("<tr data-key=") == 2, name
        assert f"PLAN #{running.number}" in page
        assert f"PLAN #{queued.number}" in page


@pytest.mark.parametrize("earlier", RENAMED)
def test_a_bookmarked_filter_finds_the_new_name(ours: Tenant, earlier: str) -> None:
    AuditEvent.objects.create(
        organization=ours.organization,
        actor_kind="runner",
        actor_name="worker",
        action=RENAMED[earlier],
        target_kind="job",
        target_id=ours.organization.pk,
    )
    assert Browser(ours, ours.admin).reads("audit/", action=earlier).count("<tr data-key=") == 1


def test_the_page_offers_every_action_and_every_kind(ours: Tenant) -> None:
    page = Browser(ours, ours.admin).reads("audit/")
    for action in AuditAction:
        assert f'<option value="{action}">{action.description}'.replace("'", "&#x27;") in page
        for kind in action.kinds:
            assert f'<option value="{kind}"' in page


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == document(), "run `python -m console.audit.document`"


def test_no_name_of_an_action_stands_beside_the_list() -> None:
    names = {*map(str, AuditAction), *RENAMED}
    for package in ("console", "specs"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.is_relative_to(ROOT / "console/audit"):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    assert node.value not in names, f"{path}:{node.lineno}: {node.value}"
                    assert not any(f"'{name}'" in node.value for name in names), f"{path}:{node.lineno}"


def test_every_name_is_a_subject_and_what_happened_to_it() -> None:
    for action in AuditAction:
        subject, _, event = action.partition(".")
        assert subject.replace("_", "").isalpha(), action
        assert event.split("_")[-1].endswith(PAST), action
        assert action.description.endswith("."), action
