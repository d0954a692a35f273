"""Deleting a Spec: what has nothing left is archived and stays readable; what has resources is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from console.audit.models import AuditEvent
from console.errors import SlipwayError
from console.jobs.models import Job
from console.jobs.services import request_plan
from console.plans.archiving import archive_spec
from specs.models import Spec
from tests.concurrency.threads import outcomes
from tests.console.plans.review import write_state
from tests.console_app import Console, code_of
from tests.page_source import source_of
from tests.people import Tenant
from tests.plans_made import a_plan
from tests.specs.editing import Browser


def archived(ours: Tenant) -> Spec:
    spec = ours.spec
    answer = Browser(ours, ours.admin).post("specs/network/archive", confirmation="network")
    assert answer.status_code == 200, answer.content
    return Spec.objects.get(pk=spec.pk)


def test_a_spec_without_resources_leaves_the_lists_and_stays_readable(console: Console, ours: Tenant) -> None:
    a_plan(console, ours)
    spec = archived(ours)
    browser = Browser(ours, ours.operator)
    assert "No Spec yet" in browser.reads("specs/")
    assert "Archived" in browser.reads("specs/", archived="1")
    assert "No state yet" in browser.reads("state/")
    shown = browser.reads(f"specs/{spec.slug}/")
    assert "cannot be planned or applied" in shown
    assert "data-key-plan" not in shown
    assert f"/ours/specs/{spec.slug}/" in browser.reads("jobs/1/")
    assert browser.get(f"specs/{spec.slug}/plans/1/").status_code == 200
    assert AuditEvent.objects.get(action="spec.archived").data == {"name": "network", "slug": "network"}


def test_nothing_more_is_done_with_it(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours)
    spec = archived(ours)
    browser, api = Browser(ours, ours.operator), console.person(ours, "operator")
    for path in ("plan", "destroy/plan", f"plans/{plan.number}/apply", "variables/zones", "state/upload"):
        refused = browser.post(f"specs/{spec.slug}/{path}")
        assert (refused.status_code, "was archived" in source_of(refused)) == (
            409,
            True,
        ), path
    asked = api.post("/api/jobs", json={"spec": str(spec.pk), "type": "PLAN"})
    assert (asked.status_code, code_of(asked)) == (409, "spec_archived")
    assert str(spec.pk) not in api.get("/api/specs?organization=ours").text
    retried = browser.post("jobs/1/retry")
    assert retried.status_code == 409


def test_its_name_is_free_and_it_comes_back_beside_the_new_one(ours: Tenant) -> None:
    spec = archived(ours)
    admin = Browser(ours, ours.admin)
    admin.post(f"specs/{spec.slug}/unarchive")
    assert Spec.objects.get(pk=spec.pk).slug == "network"
    spec = archived(ours)
    ours.new_spec("network")
    admin.post(f"specs/{spec.slug}/unarchive")
    back = Spec.objects.get(pk=spec.pk)
    assert (back.archived_at, back.slug) == (None, spec.slug)


def test_what_has_resources_is_refused_with_the_remedy(ours: Tenant) -> None:
    write_state(ours, ours.spec, "one")
    admin = Browser(ours, ours.admin)
    assert "Destroy them first" in admin.reads("specs/network/archive")
    refused = admin.post("specs/network/archive", confirmation="network")
    assert (refused.status_code, "Destroy them first" in source_of(refused)) == (
        409,
        True,
    )
    write_state(ours, ours.spec, serial=2)
    archived(ours)


@pytest.mark.parametrize("typed", ["", "Network", "network "])
def test_the_name_has_to_be_typed_exactly(ours: Tenant, typed: str) -> None:
    assert ours.spec.archived_at is None
    assert Browser(ours, ours.admin).post("specs/network/archive", confirmation=typed).status_code == 400


def test_a_spec_with_a_job_under_way_is_refused(ours: Tenant) -> None:
    ours.request()
    refused = Browser(ours, ours.admin).post("specs/network/archive", confirmation="network")
    assert (refused.status_code, "held by PLAN #1" in source_of(refused)) == (409, True)


def test_archiving_and_planning_at_once_never_both_happen(ours: Tenant) -> None:
    for round in range(4):
        spec = ours.new_spec(f"raced-{round}")
        deeds: list[Callable[[], object]] = [
            partial(archive_spec, spec=spec, confirmation=spec.name, archived_by=ours.admin),
            partial(request_plan, spec=spec, requested_by=ours.operator),
        ]
        assert sorted(outcomes(deeds, SlipwayError)) == [False, True]
        gone = Spec.objects.get(pk=spec.pk).archived_at is not None
        assert gone != Job.objects.filter(spec=spec).exists()
