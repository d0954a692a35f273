"""Runner credentials overlap while one replaces the other, and end at once when they are revoked."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from console.audit.models import AuditEvent
from console.runners.models import Runner, RunnerCredential
from runner.protocol import to_wire
from tests.console_app import Console, RunnerClient, code_of
from tests.people import Tenant, facts


def hello(runner: RunnerClient, **changes: object) -> int:
    return runner.post("/api/runners/hello", json={**to_wire(facts()), **changes}).status_code


def rotated(console: Console, runner: RunnerClient) -> RunnerClient:
    answer = runner.post("/api/runners/rotate")
    assert answer.status_code == 201, answer.text
    return console.runner(answer.json()["credential"])


def let_time_pass() -> None:
    """Ten minutes after the new credential was first used."""
    RunnerCredential.objects.exclude(expires_at=None).update(expires_at=timezone.now() - timedelta(seconds=1))


def test_both_credentials_work_until_the_new_one_has_been_shown(console: Console, ours: Tenant) -> None:
    old = console.new_runner(ours)
    new = rotated(console, old)
    let_time_pass()
    assert hello(old) == 200
    assert hello(new) == 200
    assert old.claim() is None, "requests under way may still carry the old one"
    let_time_pass()
    assert code_of(old.post("/api/runners/rotate")) == "runner_unknown"
    assert hello(new) == 200


def test_a_runner_that_lost_the_new_credential_asks_again_with_the_old_one(
    console: Console, ours: Tenant
) -> None:
    old = console.new_runner(ours)
    lost = rotated(console, old)
    found = rotated(console, old)
    assert hello(lost) == 401
    assert hello(found) == 200


def test_a_command_beside_the_runner_leaves_what_it_said_of_itself(console: Console, ours: Tenant) -> None:
    """`check` and `rotate` have options and a PATH of their own."""
    runner = console.new_runner(ours)
    assert hello(runner, slots=4, terraform_version="1.11.4") == 200
    assert hello(rotated(console, runner), slots=0, terraform_version="1.15.5") == 200
    known = Runner.objects.get(organization=ours.organization)
    assert (known.slots, known.terraform_version) == (4, "1.11.4")


def test_a_job_under_way_survives_a_rotation(console: Console, ours: Tenant) -> None:
    old = console.new_runner(ours)
    ours.request()
    claim = old.take_and_start()
    new = rotated(console, old)
    assert hello(new) == 200
    assert old.heartbeat(claim).status_code == 200
    assert new.heartbeat(claim).status_code == 200
    assert new.succeed(claim).status_code == 200


def test_a_revoked_runner_is_out_at_once_with_all_its_credentials(console: Console, ours: Tenant) -> None:
    runner, credential = ours.new_runner("leaked")
    old = console.runner(credential)
    new = rotated(console, old)
    ours.request()
    claim = old.take_and_start()
    path = f"/api/organizations/{ours.organization.slug}/runners/{runner.pk}/revoke"
    assert console.person(ours, "operator").post(path).status_code == 403
    assert console.person(ours, "admin").post(path).status_code == 204
    assert hello(old) == hello(new) == 401
    assert code_of(old.heartbeat(claim)) == "runner_unknown"
    assert AuditEvent.objects.filter(action="runner.revoked", target_id=runner.pk).exists()


def test_the_runners_of_another_organization_are_not_there(
    console: Console, ours: Tenant, theirs: Tenant
) -> None:
    runner, credential = theirs.new_runner("not-ours")
    path = f"/api/organizations/{ours.organization.slug}/runners/{runner.pk}/revoke"
    assert console.person(ours, "admin").post(path).status_code == 404
    assert hello(console.runner(credential)) == 200
    listed = console.person(ours, "viewer").get(f"/api/organizations/{ours.organization.slug}/runners")
    assert listed.json() == {"data": []}


def test_a_registration_token_lets_one_runner_into_one_pool(console: Console, ours: Tenant) -> None:
    ours.new_pool("production")
    path = f"/api/organizations/{ours.organization.slug}/registration-tokens"
    admin = console.person(ours, "admin")
    assert console.person(ours, "operator").post(path, json={}).status_code == 403
    assert admin.post(path, json={"pool": "nowhere"}).status_code == 404
    token = admin.post(path, json={"pool": "production"}).json()["token"]
    request = {"token": token, "name": "prod-1", "facts": to_wire(facts())}
    assert console.anybody().post("/api/runners/register", json=request).status_code == 201
    assert code_of(console.anybody().post("/api/runners/register", json=request)) == "registration_refused"
    (runner,) = (
        console.person(ours, "viewer").get(path.replace("registration-tokens", "runners")).json()["data"]
    )
    assert (runner["name"], runner["pools"]) == ("prod-1", ["production"])


def test_a_runner_serves_only_the_pools_it_names_and_none_that_are_not_its_own(
    console: Console, ours: Tenant
) -> None:
    production = ours.new_pool("production")
    runner, credential = ours.new_runner("both")
    runner.pools.add(production)
    client = console.runner(credential)
    ours.request(spec=ours.new_spec("elsewhere"))
    wanted = ours.request(spec=ours.new_spec("here", pool=production))
    request = {**client.claim_request(), "pools": ["production"]}
    answer = client.post("/api/jobs/claim", json=request)
    assert answer.json()["job_id"] == str(wanted.pk)
    strange = {**client.claim_request(), "pools": ["theirs"]}
    assert code_of(client.post("/api/jobs/claim", json=strange)) == "invalid_message"
    assert hello(client, pools=["theirs"]) == 400
