"""The resources of an account: sent in parts, replaced whole, kept beside failures, searched."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from console.identities.jobs import request_fetch
from console.identities.models import CloudIdentity, ResourceList, ResourcePart
from console.identities.services import change_identity
from runner.protocol import Claim
from tests.console.identities.identities_made import new_identity
from tests.console_app import Console, RunnerClient, code_of
from tests.people import Tenant


@pytest.fixture
def identity(ours: Tenant) -> CloudIdentity:
    return new_identity(ours)


def begin(ours: Tenant, identity: CloudIdentity, runner: RunnerClient) -> Claim:
    request_fetch(identity=identity, requested_by=ours.operator)
    return runner.take_and_start()


def send(runner: RunnerClient, claim: Claim, resources: list[Any], **changes: Any) -> httpx.Response:
    body = {"claim_id": claim.claim_id, "region": "eu-central-1", "kind": "subnet", "resources": resources}
    return runner.put(f"/api/jobs/{claim.job_id}/resources", json={**body, **changes})


def subnets(*names: str) -> list[dict[str, Any]]:
    return [{"id": f"subnet-{name}", "name": name, "cidr": "10.0.0.0/24", "zone": "a"} for name in names]


def listed(console: Console, ours: Tenant, identity: CloudIdentity, **query: Any) -> list[str]:
    answer = console.person(ours, "viewer").get(f"/api/identities/{identity.pk}/resources", params=query)
    assert answer.status_code == 200, answer.text
    return [resource["id"] for resource in answer.json()["data"]]


def test_a_list_is_shown_when_its_last_part_is_in(
    console: Console, ours: Tenant, identity: CloudIdentity, runner: RunnerClient
) -> None:
    claim = begin(ours, identity, runner)
    assert send(runner, claim, subnets("a", "b"), part=0, is_last=False).status_code == 200
    assert listed(console, ours, identity) == []
    assert send(runner, claim, subnets("c"), part=1).status_code == 200
    assert listed(console, ours, identity) == ["subnet-a", "subnet-b", "subnet-c"]
    runner.succeed(claim)
    # The next fetch: the old list stays until the new one is whole.
    claim = begin(ours, identity, runner)
    send(runner, claim, subnets("d"), part=0, is_last=False)
    assert listed(console, ours, identity) == ["subnet-a", "subnet-b", "subnet-c"]
    send(runner, claim, [], part=1)
    assert listed(console, ours, identity) == ["subnet-d"]
    assert ResourcePart.objects.count() == 2, "nothing is left of the old one"


def test_repeats_change_nothing(
    console: Console, ours: Tenant, identity: CloudIdentity, runner: RunnerClient
) -> None:
    claim = begin(ours, identity, runner)
    for _ in range(2):
        send(runner, claim, subnets("a"), part=0, is_last=False)
        assert send(runner, claim, subnets("b"), part=1).status_code == 200
    assert listed(console, ours, identity) == ["subnet-a", "subnet-b"]


def test_a_gap_is_told(ours: Tenant, identity: CloudIdentity, runner: RunnerClient) -> None:
    claim = begin(ours, identity, runner)
    answer = send(runner, claim, subnets("c"), part=2)
    assert (answer.status_code, code_of(answer)) == (409, "parts_missing")
    assert answer.json()["missing"] == [0, 1]
    assert not ResourcePart.objects.exists()


def test_a_failed_look_leaves_what_was_there_and_says_why(
    console: Console, ours: Tenant, identity: CloudIdentity, runner: RunnerClient
) -> None:
    claim = begin(ours, identity, runner)
    send(runner, claim, subnets("a"))
    runner.succeed(claim)
    claim = begin(ours, identity, runner)
    assert send(runner, claim, subnets("b"), error="Throttled. Try again later.").status_code == 200
    send(runner, claim, [], region="ap-east-1", error="The region is off.")
    send(runner, claim, subnets("half"), kind="vpc", error="Denied after a page.")
    runner.succeed(claim)
    assert listed(console, ours, identity, kind="subnet") == ["subnet-a"]
    assert listed(console, ours, identity, kind="vpc") == ["subnet-half"], "a part is better than nothing"
    lists = console.person(ours, "viewer").get(f"/api/identities/{identity.pk}/resources").json()["lists"]
    errors = {(resource["region"], resource["kind"]): resource["error"] for resource in lists}
    assert errors == {
        ("eu-central-1", "subnet"): "Throttled. Try again later.",
        ("ap-east-1", "subnet"): "The region is off.",
        ("eu-central-1", "vpc"): "Denied after a page.",
    }
    claim = begin(ours, identity, runner)
    send(runner, claim, subnets("b"))
    assert ResourceList.objects.get(kind="subnet", region="eu-central-1").error == ""


def test_what_a_whole_fetch_no_longer_finds_is_forgotten(
    console: Console, ours: Tenant, identity: CloudIdentity, runner: RunnerClient
) -> None:
    claim = begin(ours, identity, runner)
    send(runner, claim, subnets("a"))
    send(runner, claim, subnets("w"), region="eu-west-1")
    send(runner, claim, subnets("v"), region="eu-west-1", kind="vpc")
    runner.succeed(claim)
    claim = begin(ours, identity, runner)
    send(runner, claim, subnets("a"))
    send(runner, claim, [], kind="vpc", error="Denied.")
    runner.succeed(claim)
    assert listed(console, ours, identity, kind="subnet") == ["subnet-a"]
    assert listed(console, ours, identity, kind="vpc") == ["subnet-v"], "its kind failed, so nobody knows"
    identity.refresh_from_db()
    assert identity.last_fetch["complete"] is True


def test_a_failed_fetch_is_noted_and_keeps_everything(
    console: Console, ours: Tenant, identity: CloudIdentity, runner: RunnerClient
) -> None:
    claim = begin(ours, identity, runner)
    send(runner, claim, subnets("a"))
    runner.fail(claim, fatal=True, error_message="No credentials.")
    identity.refresh_from_db()
    assert (identity.last_fetch["complete"], identity.last_fetch["error"]) == (False, "No credentials.")
    assert listed(console, ours, identity) == ["subnet-a"]


def test_only_the_attempt_that_holds_the_fetch_may_send(
    console: Console, ours: Tenant, identity: CloudIdentity, runner: RunnerClient
) -> None:
    claim = begin(ours, identity, runner)
    other = console.new_runner(ours, "other")
    assert code_of(send(other, claim, subnets("x"))) == "stale_claim"
    runner.succeed(claim)
    assert code_of(send(runner, claim, subnets("x"))) == "stale_claim"
    ours.request()
    plan = runner.take_and_start()
    assert code_of(send(runner, plan, subnets("x"))) == "invalid_message"
    assert not ResourceList.objects.exists()


def test_a_part_that_makes_no_sense_is_refused(
    ours: Tenant, identity: CloudIdentity, runner: RunnerClient
) -> None:
    claim = begin(ours, identity, runner)
    bad: list[dict[str, Any]] = [
        {"kind": "Sub net"}, {"kind": ""}, {"region": "../x"}, {"region": ""}, {"part": -1}, {"part": 500},
        {"claim_id": "x"}, {"is_last": 1}, {"error": 7},
    ]  # fmt: skip
    for changes in bad:
        answer = send(runner, claim, subnets("a"), **changes)
        assert (answer.status_code, code_of(answer)) == (400, "invalid_message"), changes
    shapes: tuple[Any, ...] = (["subnet-a"], [{}], [{"id": 7}], [{"id": ""}], [{"id": "x" * 501}], {})
    for resources in shapes:
        answer = send(runner, claim, resources)
        assert (answer.status_code, code_of(answer)) == (400, "invalid_message"), resources
    many = send(runner, claim, [{"id": "x"}] * 2_001)
    assert (many.status_code, code_of(many)) == (413, "too_large")
    assert not ResourcePart.objects.exists()


def test_an_account_with_five_thousand_subnets(
    console: Console, ours: Tenant, identity: CloudIdentity, runner: RunnerClient
) -> None:
    claim = begin(ours, identity, runner)
    names = [f"n{number:04}" for number in range(5_000)]
    for part in range(10):
        chunk = subnets(*names[part * 500 : part * 500 + 500])
        assert send(runner, claim, chunk, part=part, is_last=part == 9).status_code == 200
    assert ResourceList.objects.get().resource_count == 5_000
    assert listed(console, ours, identity, q="n4321") == ["subnet-n4321"]
    page = listed(console, ours, identity, page=50, limit=100)
    assert (page[0], page[-1], len(page)) == ("subnet-n4900", "subnet-n4999", 100)
    assert listed(console, ours, identity, page=51, limit=100) == []


def test_a_search_takes_every_letter_as_it_is(
    console: Console, ours: Tenant, identity: CloudIdentity, runner: RunnerClient
) -> None:
    claim = begin(ours, identity, runner)
    send(
        runner,
        claim,
        [{"id": "a", "name": "100%"}, {"id": "b", "name": "x_y"}, {"id": "c", "tags": ["Prod"]}],
    )
    assert listed(console, ours, identity, q="%") == ["a"]
    assert listed(console, ours, identity, q="_") == ["b"]
    assert listed(console, ours, identity, q="pROD") == ["c"]
    assert listed(console, ours, identity, q="'; DROP TABLE x; --") == []
    for bad in ({"limit": 0}, {"page": "x"}, {"kind": "A B"}):
        answer = console.person(ours, "viewer").get(f"/api/identities/{identity.pk}/resources", params=bad)
        assert answer.status_code == 400


def test_another_account_has_other_resources(
    console: Console, ours: Tenant, identity: CloudIdentity, runner: RunnerClient
) -> None:
    claim = begin(ours, identity, runner)
    send(runner, claim, subnets("a"))
    elsewhere = {"role_arn": "arn:aws:iam::999999999999:role/slipway"}
    change_identity(identity=identity, changed_by=ours.admin, settings=elsewhere)
    assert listed(console, ours, identity) == []
