"""Versions: two writers cannot both win, old ones go, those that are referred to stay, keys rotate."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command

from console import vault
from console.plans.models import Plan
from console.state.models import Origin, StateVersion
from console.state.services import read_version
from runner.protocol import JobType
from tests.console.state.backend_client import LINEAGE, StateClient, state
from tests.console_app import Background, Console
from tests.people import Tenant


@pytest.fixture
def person(background: Background, ours: Tenant) -> StateClient:
    return StateClient.of_person(background, ours.spec, ours, "operator")


def serials(tenant: Tenant) -> list[int]:
    return sorted(StateVersion.objects.filter(spec=tenant.spec).values_list("serial", flat=True))


def test_of_two_writers_at_once_one_wins(person: StateClient, ours: Tenant) -> None:
    """Under the same lock, which a careful Terraform never does."""
    for serial in range(1, 6):
        lock_id = person.locked()
        answers = [
            person.begin_write(state(serial, outputs={f"n{n}": _output(n)}), lock_id) for n in range(6)
        ]
        codes = sorted(answer.result(30).status_code for answer in answers)
        assert codes == [200, 409, 409, 409, 409, 409]
        person.unlock(lock_id)
    assert serials(ours) == [1, 2, 3, 4, 5]


def _output(number: int) -> dict[str, Any]:
    return {"value": number, "type": "number"}


def test_of_many_who_want_the_lock_one_gets_it(background: Background, ours: Tenant) -> None:
    people = [
        StateClient.of_person(background, ours.spec, ours, role)
        for role in ("operator", "second_operator", "admin")
    ]
    attempts = [person.begin_lock(f"lock-{index}") for index, person in enumerate(people * 4)]
    codes = sorted(answer.result(30).status_code for answer in attempts)
    assert codes == [200] + [423] * 11


def test_the_last_versions_stay(person: StateClient, ours: Tenant, settings: Any) -> None:
    settings.SLIPWAY_STATE_VERSIONS_KEPT = 3
    for serial in range(1, 8):
        person.store(state(serial))
    assert serials(ours) == [5, 6, 7]


def test_what_a_plan_was_made_from_and_what_a_job_ended_with_stays(
    person: StateClient, ours: Tenant, console: Console, background: Background, settings: Any
) -> None:
    settings.SLIPWAY_STATE_VERSIONS_KEPT = 2
    person.store(state(1))
    runner = console.new_runner(ours)
    ours.request()
    planning = runner.take_and_start()
    assert runner.upload_plan(planning, lineage=LINEAGE, serial=1).status_code == 201
    runner.succeed(planning, result={"summary": {}})
    ours.request(JobType.DESTROY)
    destroying = runner.take_and_start()
    attempt = StateClient.of_attempt(background, ours.spec, destroying)
    for serial in (2, 3, 4):  # an apply saves its state again and again
        attempt.store(state(serial))
    runner.succeed(destroying)
    for serial in range(5, 10):
        person.store(state(serial))
    assert Plan.objects.get(spec=ours.spec).state_serial == 1
    assert serials(ours) == [1, 4, 8, 9]


def test_a_new_key_seals_and_the_old_one_still_opens_until_everything_is_sealed_again(
    person: StateClient, ours: Tenant, settings: Any
) -> None:
    person.store(state(1))
    old_keys = settings.SLIPWAY_ENCRYPTION_KEYS
    new_key = vault.new_key()
    try:
        _use_keys(settings, f"{new_key},{old_keys}")
        person.store(state(2))
        call_command("reseal")
        _use_keys(settings, new_key)
        assert [read_version(version=version) for version in StateVersion.objects.order_by("serial")] == [
            state(1),
            state(2),
        ]
    finally:
        _use_keys(settings, old_keys)


def _use_keys(settings: Any, keys: str) -> None:
    settings.SLIPWAY_ENCRYPTION_KEYS = keys
    vault._ciphers.cache_clear()


def test_the_api_tells_of_versions_and_lock_and_rolls_back(
    console: Console, person: StateClient, ours: Tenant
) -> None:
    person.store(state(1))
    person.store(state(2, outputs={"a": _output(1)}))
    lock_id = person.locked(Who="me@here")
    viewer, admin = console.person(ours, "viewer"), console.person(ours, "admin")
    path = f"/api/specs/{ours.spec.pk}/state"
    told = viewer.get("/api/organizations/ours/specs/network/state").json()
    assert told == viewer.get(path).json()
    assert [version["serial"] for version in told["versions"]] == [2, 1]
    assert told["lock"]["holder"] == "ours-operator (me@here)"
    assert viewer.post(f"{path}/unlock", json={"lock_id": lock_id}).status_code == 403
    body = {"confirmation": "network"}
    assert admin.post(f"{path}/1/roll-back", json=body).status_code == 423
    assert admin.post(f"{path}/unlock", json={"lock_id": lock_id}).json()["lock"] is None
    assert console.person(ours, "operator").post(f"{path}/1/roll-back", json=body).status_code == 403
    assert admin.post(f"{path}/77/roll-back", json=body).status_code == 404
    rolled_back = admin.post(f"{path}/1/roll-back", json=body)
    assert rolled_back.status_code == 201
    assert rolled_back.json()["serial"] == 3
    assert StateVersion.objects.get(serial=3).origin == Origin.ROLL_BACK


def test_the_api_chooses_a_backend_and_never_shows_its_secrets(console: Console, ours: Tenant) -> None:
    admin, path = console.person(ours, "admin"), f"/api/specs/{ours.spec.pk}/state/backend"
    backend = {"kind": "pg", "environment": {"PG_CONN_STR": "postgres://u:hidden@h/d"}}
    assert console.person(ours, "operator").put(path, json=backend).status_code == 403
    assert admin.put(path, json=backend).status_code == 200
    answer = admin.get(path)
    assert answer.json()["environment"] == ["PG_CONN_STR"]
    assert "hidden" not in answer.text
