"""Keys are replaced while everything goes on: nothing that is kept is lost, and no plan goes stale by it."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from console import vault
from console.janitor.resealing import sealed_columns
from console.plans.documents import plan_document
from console.plans.models import PlanFile
from console.plans.staleness import staleness_of
from console.state.backends import choose_backend, environment_of
from console.vault import SEALED_FIELDS
from specs.models import SealedValue
from specs.outputs import record_deploy, reveal_output
from specs.selectors import snapshot_of
from specs.services import change_variable
from specs.variables import reveal
from tests.console.state.backend_client import StateClient, state
from tests.console_app import Background, Console
from tests.people import Tenant
from tests.plans_made import a_plan


@pytest.fixture
def use_keys(settings: Any) -> Any:
    """Changes the ring of keys; it is as before when the test has ended."""
    before = settings.SLIPWAY_ENCRYPTION_KEYS

    def use(*keys: str) -> None:
        settings.SLIPWAY_ENCRYPTION_KEYS = ",".join(keys)
        vault._ciphers.cache_clear()

    yield use
    use(before)


def set_secret(tenant: Tenant, value: str) -> None:
    change_variable(
        spec=tenant.spec, category="environment", name="API_KEY", value=value, sensitive=True,
        author=tenant.operator,
    )  # fmt: skip


def test_each_column_with_sealed_values_is_known_to_the_command() -> None:
    registered = {(place.model, place.field) for place in SEALED_FIELDS}
    assert registered == set(sealed_columns())


def test_after_a_reseal_the_old_key_can_go_and_everything_opens(
    console: Console, ours: Tenant, use_keys: Any, settings: Any
) -> None:
    set_secret(ours, "hunter2")
    record_deploy(
        spec=ours.spec, outputs={"password": {"sensitive": True}}, sensitive_values={"password": "s3cret"}
    )
    backend = choose_backend(
        organization=ours.organization, spec=None, kind="pg", settings={},
        environment={"PG_CONN_STR": "postgres://hidden"}, chosen_by=ours.admin,
    )  # fmt: skip
    plan = a_plan(console, ours)
    old, new = settings.SLIPWAY_ENCRYPTION_KEYS, vault.new_key()
    use_keys(new, old)
    printed = StringIO()
    call_command("reseal", stdout=printed)
    assert "the others can be removed" in printed.getvalue()
    use_keys(new)
    assert reveal(snapshot_of(ours.spec), organization_id=ours.organization.pk).environment == {
        "API_KEY": "hunter2"
    }
    assert plan_document(PlanFile.objects.get().plan)["resource_changes"]
    assert reveal_output(spec=ours.spec, name="password", revealed_to=ours.operator) == "s3cret"
    backend.refresh_from_db()
    assert environment_of(backend) == {"PG_CONN_STR": "postgres://hidden"}
    call_command("reseal", stdout=StringIO())
    assert staleness_of(plan) is None


def test_it_says_when_older_keys_are_still_needed(
    ours: Tenant, use_keys: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_secret(ours, "hunter2")
    monkeypatch.setattr("console.janitor.resealing.SEALED_FIELDS", [])
    use_keys(vault.new_key(), settings.SLIPWAY_ENCRYPTION_KEYS)
    with pytest.raises(CommandError, match=r"specs\.SealedValue\.sealed \(1\)"):
        call_command("reseal", stdout=StringIO())


def test_a_new_secret_key_makes_no_plan_stale_and_the_same_secret_no_other(
    console: Console, ours: Tenant, use_keys: Any, settings: Any
) -> None:
    set_secret(ours, "hunter2")
    plan = a_plan(console, ours)
    settings.SECRET_KEY = "another one, which is long enough to be one"
    use_keys(vault.new_key(), settings.SLIPWAY_ENCRYPTION_KEYS)
    set_secret(ours, "hunter2")
    assert ours.spec.revisions.count() == 2, "the one that set it first, and nothing since"
    assert SealedValue.objects.count() == 1
    assert staleness_of(plan) is None


def test_the_state_tokens_of_attempts_outlive_a_new_secret_key(
    console: Console, background: Background, ours: Tenant, settings: Any
) -> None:
    ours.request()
    claim = console.new_runner(ours).take_and_start()
    attempt = StateClient.of_attempt(background, ours.spec, claim)
    old = settings.SECRET_KEY
    settings.SECRET_KEY = "another one, which is long enough to be one"
    assert attempt.read().status_code == 401
    settings.SECRET_KEY_FALLBACKS = [old]
    attempt.store(state(1))
    assert attempt.read().status_code == 200
