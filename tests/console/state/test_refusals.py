"""Every refusal of the backend is its own, says why, and leaves the stored state as it was."""

from __future__ import annotations

import base64
import gzip
import socket
from urllib.parse import urlsplit

import httpx
import pytest
from django.db import IntegrityError, connection

from console.state.models import StateLock, StateVersion
from console.state.services import read_state
from runner.protocol import Claim
from tests.console.state.backend_client import StateClient, lock_info, md5, state
from tests.console_app import Background, Console, RunnerClient, code_of
from tests.people import Tenant

NUL = b'{"ID": "a", "Info": "\\u0000"}'


@pytest.fixture
def runner(console: Console, ours: Tenant) -> RunnerClient:
    return console.new_runner(ours, slots=5)


@pytest.fixture
def claim(runner: RunnerClient, ours: Tenant) -> Claim:
    ours.request()
    return runner.take_and_start()


@pytest.fixture
def attempt(background: Background, ours: Tenant, claim: Claim) -> StateClient:
    return StateClient.of_attempt(background, ours.spec, claim)


@pytest.fixture
def person(background: Background, ours: Tenant) -> StateClient:
    return StateClient.of_person(background, ours.spec, ours, "operator")


def refused(client: StateClient, body: bytes, **headers: str) -> tuple[int, str]:
    lock_id = client.locked()
    answer = client.write(body, lock_id, **headers)
    client.unlock(lock_id)
    return answer.status_code, code_of(answer)


def test_state_that_was_never_written_is_no_content(attempt: StateClient) -> None:
    assert attempt.read().status_code == 204


def test_what_was_written_is_read_byte_by_byte_packed_or_not(attempt: StateClient) -> None:
    body = state(7, outputs={"greeting": {"value": "hällo", "type": "string"}})
    attempt.store(body)
    assert attempt.read().content == body  # httpx unpacks it
    assert attempt.read(**{"Accept-Encoding": "gzip"}).headers["Content-Encoding"] == "gzip"
    plain = attempt.read(**{"Accept-Encoding": "identity"})
    assert plain.content == body
    assert "Content-Encoding" not in plain.headers


def test_a_version_says_who_when_and_from_which_job(
    attempt: StateClient, person: StateClient, claim: Claim, ours: Tenant
) -> None:
    attempt.store(state(1))
    person.store(state(2))
    first, second = StateVersion.objects.filter(spec=ours.spec).order_by("serial")
    assert (str(first.job_id), str(first.claim_id), first.author) == (claim.job_id, claim.claim_id, None)
    assert (second.job, second.author, second.origin) == (None, ours.operator, "person")
    assert second.size_bytes == len(state(2))


@pytest.mark.parametrize("password", ["", "nonsense", "sls_" + "0" * 32 + "_" + "0" * 64, "slu_" + "x" * 43])
def test_a_wrong_token(background: Background, ours: Tenant, password: str) -> None:
    client = StateClient(background, ours.spec, password)
    for answer in (client.read(), client.lock("a"), client.write(state(), "a"), client.force_unlock()):
        assert (answer.status_code, code_of(answer)) == (401, "state_token_unknown")
        assert answer.headers["WWW-Authenticate"].startswith("Basic")
    assert not StateVersion.objects.exists()


def test_the_token_of_another_spec(background: Background, ours: Tenant, claim: Claim) -> None:
    client = StateClient.of_attempt(background, ours.new_spec("other"), claim)
    for answer in (client.read(), client.lock("a"), client.write(state(), "a"), client.force_unlock()):
        assert (answer.status_code, code_of(answer)) == (403, "state_token_elsewhere")


def test_the_token_of_an_attempt_that_has_ended(
    attempt: StateClient, runner: RunnerClient, claim: Claim, ours: Tenant
) -> None:
    attempt.store(state(1))
    lock_id = attempt.locked()
    assert runner.succeed(claim).status_code == 200
    for answer in (attempt.read(), attempt.write(state(2), lock_id), attempt.unlock(lock_id)):
        assert (answer.status_code, code_of(answer)) == (401, "state_token_expired")
    assert read_state(spec=ours.spec) == state(1)


def test_a_person_of_another_organization_finds_nothing(
    background: Background, ours: Tenant, theirs: Tenant
) -> None:
    answer = StateClient.of_person(background, ours.spec, theirs, "admin").read()
    assert (answer.status_code, code_of(answer)) == (404, "not_found")


def test_a_viewer_is_told_which_role_it_takes(background: Background, ours: Tenant) -> None:
    answer = StateClient.of_person(background, ours.spec, ours, "viewer").read()
    assert (answer.status_code, code_of(answer)) == (403, "forbidden")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[1, 2]",
        b'{"hello": "world"}',
        state(version=3),
        state(-1),
        state(lineage=""),
        state(resources="many"),
        state(resources={}),
        state(resources=[1]),
        state(resources=[{"mode": "managed", "instances": []}]),
        state(resources=[{"mode": "managed", "type": "a", "name": "b", "instances": 5}]),
        state(resources=[{"mode": "managed", "type": "a", "name": "b", "instances": [{"attributes": [1]}]}]),
        state(outputs=[1]),
        state(outputs={"a": 1}),
        state(lineage="a\0b"),
        state(terraform_version=3),
        state()[:-20],
    ],
)
def test_a_body_that_is_not_state(person: StateClient, ours: Tenant, body: bytes) -> None:
    person.store(state(1))
    assert refused(person, body) == (400, "not_state")
    assert read_state(spec=ours.spec) == state(1)


def test_an_oversize_body(person: StateClient, ours: Tenant, settings: object) -> None:
    person.store(state(1))
    settings.SLIPWAY_MAX_STATE_BYTES = 1_000  # type: ignore[attr-defined]
    large = state(2, terraform_version="x" * 1_000)
    assert refused(person, large) == (413, "state_too_large")
    assert refused(person, large, **{"Content-Length": str(10**12)}) == (413, "state_too_large")
    assert read_state(spec=ours.spec) == state(1)


def test_a_body_that_is_not_what_its_checksum_says(person: StateClient, ours: Tenant) -> None:
    person.store(state(1))
    assert refused(person, state(2), **{"Content-MD5": md5(state(3))}) == (400, "state_cut_off")
    assert refused(person, state(2), **{"Content-Length": str(len(state(2)) + 5)}) == (400, "state_cut_off")
    assert read_state(spec=ours.spec) == state(1)
    person.store(state(2))


def test_a_write_that_is_cut_off_in_the_middle_leaves_the_old_version(served: str, ours: Tenant) -> None:
    """At the socket: half of the body, then nothing."""
    login = ("me", ours.token_of(ours.operator))
    address = f"{served}/api/state/{ours.spec.pk}"
    assert httpx.request("LOCK", address, json=lock_info("a"), auth=login).status_code == 200
    assert httpx.post(f"{address}?ID=a", content=state(1), auth=login).status_code == 200
    place, body = urlsplit(address), state(2)
    head = (
        f"POST {place.path}?ID=a HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {len(body)}\r\n"
        f"Authorization: Basic {base64.b64encode(':'.join(login).encode()).decode()}\r\n\r\n"
    )
    with socket.create_connection((str(place.hostname), place.port or 0)) as cut:
        cut.sendall(head.encode() + body[: len(body) // 2])
    assert httpx.get(address, auth=login).content == state(1)
    assert httpx.post(f"{address}?ID=a", content=state(2), auth=login).status_code == 200
    assert [version.serial for version in StateVersion.objects.order_by("serial")] == [1, 2]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (state(4), "state_older"),
        (state(5, terraform_version="2"), "state_older"),
        (state(6, lineage="other"), "state_lineage_differs"),
    ],
)
def test_what_does_not_follow(person: StateClient, ours: Tenant, body: bytes, code: str) -> None:
    person.store(state(5))
    assert refused(person, body) == (409, code)
    assert read_state(spec=ours.spec) == state(5)


def test_writing_without_the_lock(person: StateClient, ours: Tenant) -> None:
    answer = person.write(state(), "never-taken")
    assert (answer.status_code, code_of(answer)) == (409, "state_not_locked")
    answer = person.delete("never-taken")
    assert answer.status_code == 200, "there is nothing to delete"
    assert not StateVersion.objects.exists()


def test_writing_under_somebody_elses_lock(person: StateClient, attempt: StateClient, ours: Tenant) -> None:
    lock_id = attempt.locked()
    for sent_id in (lock_id, "another", ""):
        answer = person.write(state(), sent_id)
        assert answer.status_code == 423
        assert answer.json()["ID"] == lock_id
    assert not StateVersion.objects.exists()


def test_a_refused_lock_carries_the_holders_document_and_name(
    person: StateClient, attempt: StateClient, claim: Claim
) -> None:
    lock_id = attempt.locked(Who="root@runner-1", Operation="OperationTypePlan")
    answer = person.lock("mine")
    assert answer.status_code == 423
    document = answer.json()
    assert document == lock_info(lock_id, Who="root@runner-1", Operation="OperationTypePlan") | {
        "Info": f"PLAN #{claim.job_number} on runner runner"
    }
    assert person.holder().json() == document
    assert person.unlock("mine").status_code in (403, 423)
    assert person.holder().json()["ID"] == lock_id


def test_locking_twice_is_the_same_lock_for_its_holder_only(
    person: StateClient, attempt: StateClient
) -> None:
    lock_id = attempt.locked()
    assert attempt.lock(lock_id).status_code == 200
    assert person.lock(lock_id).status_code == 423
    assert attempt.unlock(lock_id).status_code == 200
    assert attempt.unlock(lock_id).status_code == 200, "the answer to the first one may have been lost"


def test_a_repeated_write_is_one_version(person: StateClient) -> None:
    lock_id = person.locked()
    assert person.write(state(1), lock_id).status_code == 200
    assert person.write(state(1), lock_id).status_code == 200
    assert StateVersion.objects.count() == 1


def test_an_attempt_takes_no_lock_away(person: StateClient, attempt: StateClient) -> None:
    person.locked()
    answer = attempt.force_unlock()
    assert (answer.status_code, code_of(answer)) == (403, "forbidden")
    assert StateLock.objects.count() == 1


def test_deleting_leaves_an_empty_state_and_the_history(person: StateClient, ours: Tenant) -> None:
    person.store(state(1, outputs={"a": {"value": 1, "type": "number"}}))
    lock_id = person.locked()
    assert person.delete(lock_id).status_code == 200
    assert person.read().json()["outputs"] == {}
    assert person.read().json()["serial"] == 2
    assert StateVersion.objects.count() == 2


def test_a_lock_document_that_is_none(person: StateClient) -> None:
    for body in (b"[]", b"{", b'{"ID": ""}', b'{"ID": "' + b"x" * 101 + b'"}', NUL, b" " * 70_000):
        answer = person._http.request("LOCK", person.path, content=body)
        assert (answer.status_code, code_of(answer)) == (400, "invalid_message")
    assert not StateLock.objects.exists()


def test_a_stored_version_cannot_be_overwritten_even_in_the_database(
    person: StateClient, ours: Tenant
) -> None:
    person.store(state(1))
    with pytest.raises(IntegrityError, match="never overwritten"):
        StateVersion.objects.filter(spec=ours.spec).update(serial=2)
    with connection.cursor() as cursor:
        cursor.execute("SELECT sealed_body FROM state_stateversion")
        (sealed,) = cursor.fetchone()
    assert not bytes(sealed).startswith(gzip.compress(b"")[:2])
