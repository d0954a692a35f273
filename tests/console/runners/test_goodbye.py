"""A runner that stops in good order is offline at once; no late word, and nobody else's, does that."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.db.models.functions import Now

from console.audit.models import AuditEvent
from console.janitor.services import run_once
from console.jobs.models import JobClaim
from console.live import topics
from console.live.publish import publisher
from console.runners.models import Runner
from console.runners.presence import LATE_REQUEST, note_contact
from runner.protocol import to_wire
from tests.console_app import Console, RunnerClient, code_of
from tests.database_clock import let_runner_be_silent
from tests.people import Tenant, facts, fresh, new_key


def hello(runner: RunnerClient, start_id: str) -> None:
    body = {**to_wire(facts()), "start_id": start_id}
    assert runner.post("/api/runners/hello", json=body).status_code == 200


def goodbye(runner: RunnerClient, start_id: str) -> httpx.Response:
    return runner.post("/api/runners/goodbye", json={"start_id": start_id})


def status() -> str:
    return Runner.objects.get().status


def actions() -> list[str]:
    return list(AuditEvent.objects.order_by("id").values_list("action", flat=True))


@pytest.fixture
def runner(console: Console, ours: Tenant) -> RunnerClient:
    """One that has said hello, at its first start."""
    runner = console.new_runner(ours)
    hello(runner, "first")
    return runner


def test_it_is_offline_at_once_and_that_is_no_outage(
    console: Console, ours: Tenant, runner: RunnerClient
) -> None:
    answer = goodbye(runner, "first")
    assert (answer.status_code, answer.json()) == (200, {})
    path = f"/api/organizations/{ours.organization.slug}/runners"
    (listed,) = console.person(ours, "viewer").get(path).json()["data"]
    assert listed["status"] == "OFFLINE"
    assert listed["stopped_at"] is not None
    Runner.objects.update(last_contact_at=Now() - timedelta(hours=1))
    run_once()
    assert actions().count("runner.stopped") == 1
    assert "runner.went_offline" not in actions()


def test_open_pages_are_told_once(
    ours: Tenant, runner: RunnerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(publisher, "publish", told.extend)
    goodbye(runner, "another start's")
    assert told == []
    goodbye(runner, "first")
    goodbye(runner, "first")
    assert told == [topics.organization(ours.organization.pk, "runners")]


def test_a_repeat_changes_nothing(runner: RunnerClient) -> None:
    goodbye(runner, "first")
    stopped_at = Runner.objects.get().stopped_at
    assert goodbye(runner, "first").status_code == 200
    assert Runner.objects.get().stopped_at == stopped_at
    assert actions().count("runner.stopped") == 1


def test_a_goodbye_that_is_late_does_not_take_the_next_start_away(runner: RunnerClient) -> None:
    hello(runner, "second")
    assert goodbye(runner, "first").status_code == 200
    assert status() == "ONLINE"
    assert goodbye(runner, "second").status_code == 200
    assert status() == "OFFLINE"


def test_a_goodbye_that_comes_after_the_next_starts_own_is_no_sign_of_life(runner: RunnerClient) -> None:
    hello(runner, "second")
    goodbye(runner, "second")
    Runner.objects.update(stopped_at=Now() - LATE_REQUEST * 2)
    goodbye(runner, "first")
    assert status() == "OFFLINE"


def test_the_next_start_is_online_with_its_hello(runner: RunnerClient) -> None:
    goodbye(runner, "first")
    hello(runner, "second")
    assert status() == "ONLINE"
    assert Runner.objects.get().stopped_at is None


def test_a_claim_request_that_was_still_held_does_not_bring_it_back(runner: RunnerClient) -> None:
    goodbye(runner, "first")
    assert runner.claim() is None
    assert status() == "OFFLINE"


def test_a_goodbye_between_the_look_at_a_request_and_its_note_wins(
    ours: Tenant, runner: RunnerClient
) -> None:
    goodbye(runner, "first")
    note_contact(runner_id=Runner.objects.get().pk, organization_id=ours.organization.pk)
    assert status() == "OFFLINE"


def test_another_process_with_the_same_credential_is_heard_again(runner: RunnerClient) -> None:
    goodbye(runner, "first")
    Runner.objects.update(stopped_at=Now() - LATE_REQUEST * 2)
    runner.claim()
    assert status() == "ONLINE"
    assert Runner.objects.get().stopped_at is None


def test_a_check_or_a_rotation_beside_it_does_not_cost_a_runner_its_goodbye(runner: RunnerClient) -> None:
    hello(runner, "")
    goodbye(runner, "first")
    assert status() == "OFFLINE"


def test_a_job_that_it_holds_is_its_own_until_the_lease_ends(ours: Tenant, runner: RunnerClient) -> None:
    job = ours.request()
    claim = runner.take_and_start()
    before = JobClaim.objects.values().get()
    goodbye(runner, "first")
    run_once()
    assert JobClaim.objects.values().get() == before
    assert fresh(job).status == "PROCESSING"
    assert runner.succeed(claim).status_code == 200
    assert status() == "OFFLINE"


def test_a_runner_that_says_no_goodbye_is_offline_after_a_minute(console: Console, ours: Tenant) -> None:
    old, credential = ours.new_runner("old")
    hello(console.runner(credential), "")
    let_runner_be_silent(old, timedelta(seconds=61))
    run_once()
    assert (status(), Runner.objects.get().stopped_at) == ("OFFLINE", None)


@pytest.mark.parametrize("body", [{}, {"start_id": ""}, {"start_id": 7}], ids=["none", "empty", "number"])
def test_a_goodbye_that_names_no_start_is_refused(
    console: Console, ours: Tenant, body: dict[str, Any]
) -> None:
    runner = console.new_runner(ours)
    assert code_of(runner.post("/api/runners/goodbye", json=body)) == "invalid_message"
    assert status() == "ONLINE"


def test_a_credential_says_goodbye_for_itself_alone(console: Console, ours: Tenant, theirs: Tenant) -> None:
    clients = [console.new_runner(ours, "one"), console.new_runner(ours, "two"), console.new_runner(theirs)]
    for client in clients:
        hello(client, "the-same")
    goodbye(clients[0], "the-same")
    gone = Runner.objects.get(status="OFFLINE")
    assert (gone.organization, gone.name) == (ours.organization, "one")
    event = AuditEvent.objects.get(action="runner.stopped")
    assert (event.organization, event.target_id) == (ours.organization, gone.pk)
    assert code_of(goodbye(console.runner(f"slr_{new_key()}"), "the-same")) == "runner_unknown"


def test_its_name_is_free_for_another_registration_at_once(ours: Tenant, runner: RunnerClient) -> None:
    goodbye(runner, "first")
    again, _ = ours.new_runner()
    assert (again.pk, status()) == (Runner.objects.get().pk, "ONLINE")
