"""Real Terraform against the console's own backend: what it does every day, and what it must not do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.audit.models import AuditEvent
from console.state.models import Origin, StateLock, StateVersion
from console.state.services import read_state
from tests.console.state.conftest import NewLaptop
from tests.console.state.terraform import HTTP_BACKEND, TWO_RESOURCES, WAITING, Terraform
from tests.people import Tenant


def serials(tenant: Tenant) -> list[int]:
    return list(
        StateVersion.objects.filter(spec=tenant.spec).order_by("serial").values_list("serial", flat=True)
    )


def ready(laptop: NewLaptop, configuration: str = TWO_RESOURCES, **who: str) -> Terraform:
    return laptop(**who).write(backend=HTTP_BACKEND, main=configuration).init()


def test_init_plan_apply_list_push_and_destroy(laptop: NewLaptop, ours: Tenant) -> None:
    terraform = ready(laptop)
    terraform.run("plan", "-no-color", "-out=plan")
    terraform.run("apply", "-no-color", "plan")
    assert "terraform_data.server[1]" in terraform.run("state", "list")
    (version,) = StateVersion.objects.filter(spec=ours.spec)
    assert (version.author, version.origin, version.resource_count) == (ours.operator, Origin.PERSON, 4)
    pulled = terraform.pull()
    assert (pulled["serial"], pulled["lineage"]) == (version.serial, version.lineage)

    pulled["serial"] += 1
    (terraform.folder / "pushed.json").write_text(json.dumps(pulled))
    terraform.run("state", "push", "pushed.json")
    first, second = serials(ours)
    assert first == version.serial
    assert second > first

    terraform.run("destroy", "-no-color", "-auto-approve")
    assert terraform.pull()["resources"] == []
    assert not StateLock.objects.exists()


def test_the_stored_body_is_sealed_and_small(laptop: NewLaptop, ours: Tenant) -> None:
    ready(laptop).apply()
    version = StateVersion.objects.get(spec=ours.spec)
    assert b"terraform_data" not in bytes(version.sealed_body)
    assert b"hunter2" not in bytes(version.sealed_body)
    assert len(version.sealed_body) < version.size_bytes
    assert b"hunter2" in (read_state(spec=ours.spec) or b"")


def test_the_lock_is_also_a_post_and_a_delete(laptop: NewLaptop, ours: Tenant) -> None:
    terraform = laptop().write(backend=HTTP_BACKEND, main=TWO_RESOURCES)
    lock_address = terraform.environ["TF_HTTP_ADDRESS"] + "/lock"
    terraform.environ |= {
        "TF_HTTP_LOCK_ADDRESS": lock_address,
        "TF_HTTP_UNLOCK_ADDRESS": lock_address,
        "TF_HTTP_LOCK_METHOD": "POST",
        "TF_HTTP_UNLOCK_METHOD": "DELETE",
    }
    terraform.init().apply()
    assert len(serials(ours)) == 1
    assert not StateLock.objects.exists()


def test_the_second_apply_is_refused_while_the_first_one_holds_the_lock(
    laptop: NewLaptop, ours: Tenant
) -> None:
    first, second = ready(laptop, WAITING), ready(laptop)
    with first.in_the_middle():
        lock = StateLock.objects.get(spec=ours.spec)
        refused = second.try_to("apply", "-no-color", "-auto-approve")
        assert refused.returncode == 1
        assert "already locked" in refused.stderr
        assert f"ID={lock.lock_id}" in refused.stderr
    assert len(serials(ours)) >= 1
    assert not StateLock.objects.exists()


def test_the_second_apply_waits_when_it_is_told_to(laptop: NewLaptop, ours: Tenant) -> None:
    first, second = ready(laptop, WAITING), ready(laptop, WAITING)
    second.let_go()
    with first.in_the_middle() as applying, second.applying("-lock-timeout=20s") as waiting:
        waiting.wait_for("Acquiring state lock")
        first.let_go()
        assert applying.end() == 0
        assert waiting.end() == 0, waiting.printed
    # What the first one made was there for the second.
    assert "0 added" in waiting.printed
    assert len(serials(ours)) == 1


def test_a_killed_terraform_leaves_its_lock_and_force_unlock_takes_it_away(
    laptop: NewLaptop, ours: Tenant
) -> None:
    first = ready(laptop, WAITING)
    with first.in_the_middle() as applying:
        applying.kill()
    lock = StateLock.objects.get(spec=ours.spec)
    second = ready(laptop)
    assert second.try_to("apply", "-no-color", "-auto-approve").returncode == 1
    # Its holder is the same person, on another machine.
    second.run("force-unlock", "-force", lock.lock_id)
    assert not StateLock.objects.exists()
    event = AuditEvent.objects.get(action="state.force_unlocked")
    assert event.actor_name == ours.operator.username
    assert event.data["lock_id"] == lock.lock_id
    second.apply()


def test_somebody_elses_lock_is_taken_away_by_an_admin_only(laptop: NewLaptop, ours: Tenant) -> None:
    first = ready(laptop, WAITING)
    with first.in_the_middle() as applying:
        applying.kill()
    lock = StateLock.objects.get(spec=ours.spec)
    another = ready(laptop, person="second_operator")
    refused = another.try_to("force-unlock", "-force", lock.lock_id)
    assert refused.returncode == 1
    assert StateLock.objects.filter(lock_id=lock.lock_id).exists()
    ready(laptop, person="admin").run("force-unlock", "-force", lock.lock_id)
    assert not StateLock.objects.exists()


def test_a_lock_stolen_in_the_middle_of_an_apply_loses_nothing(laptop: NewLaptop, ours: Tenant) -> None:
    first = ready(laptop, WAITING)
    with first.in_the_middle() as applying:
        lock = StateLock.objects.get(spec=ours.spec)
        ready(laptop, person="admin").run("force-unlock", "-force", lock.lock_id)
        first.let_go()
        assert applying.end() == 1, applying.printed
    assert serials(ours) == []
    saved = first.folder / "errored.tfstate"
    assert {resource["name"] for resource in json.loads(saved.read_text())["resources"]} == {"before", "slow"}
    first.run("state", "push", "errored.tfstate")
    assert len(serials(ours)) == 1


@pytest.mark.parametrize("change", [{"serial": 0, "outputs": {}}, {"lineage": "another"}])
def test_an_older_serial_or_another_lineage_is_refused_even_by_force(
    laptop: NewLaptop, ours: Tenant, change: dict[str, object], tmp_path: Path
) -> None:
    terraform = ready(laptop)
    terraform.apply()
    before = read_state(spec=ours.spec)
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(terraform.pull() | change))
    assert terraform.try_to("state", "push", "-force", str(wrong)).returncode == 1
    assert read_state(spec=ours.spec) == before


def test_writing_without_the_lock_is_refused(laptop: NewLaptop, ours: Tenant) -> None:
    terraform = ready(laptop)
    assert terraform.try_to("apply", "-no-color", "-auto-approve", "-lock=false").returncode == 1
    assert serials(ours) == []
    assert (terraform.folder / "errored.tfstate").exists()


@pytest.mark.parametrize(
    ("token", "said"),
    [("slu_" + "x" * 43, "requires auth"), ("nonsense", "requires auth")],
)
def test_a_wrong_token_opens_nothing(laptop: NewLaptop, ours: Tenant, token: str, said: str) -> None:
    terraform = laptop(token=token).write(backend=HTTP_BACKEND, main=TWO_RESOURCES)
    refused = terraform.try_to("init", "-no-color")
    refused = terraform.try_to("plan", "-no-color") if refused.returncode == 0 else refused
    assert refused.returncode == 1
    assert said in refused.stderr


def test_a_viewer_may_not_open_state(laptop: NewLaptop, ours: Tenant) -> None:
    terraform = laptop(person="viewer").write(backend=HTTP_BACKEND, main=TWO_RESOURCES)
    terraform.try_to("init", "-no-color")
    refused = terraform.try_to("plan", "-no-color")
    assert refused.returncode == 1
    assert "invalid auth" in refused.stderr
