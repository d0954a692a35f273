"""Sockets: replay and tail as one stream without gap or duplicate, and nobody listens in."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import AnonymousUser

from console.accounts.authentication import sign_in_with_session
from console.accounts.consumers import OrganizationConsumer
from console.accounts.models import User
from console.accounts.services import end_all_sessions
from console.jobs import job_header
from console.jobs.log.consumers import JobConsumer
from console.jobs.models import Job
from console.jobs.services import cancel_job
from console.live.consumers import CONNECT_AGAIN
from runner.protocol import Claim
from tests.console.jobs.test_long_poll import wait_until_it_is_held
from tests.console_app import Background, Console, RunnerClient
from tests.people import Tenant, some_uuid

SECONDS = 8


class Socket:
    """One open socket of a page."""

    def __init__(self, background: Background, consumer: Any, path: str, user: Any, **route: Any) -> None:
        self._background = background

        async def make() -> Any:
            communicator = WebsocketCommunicator(consumer.as_asgi(), path)
            communicator.scope["user"] = sign_in_with_session(user)
            communicator.scope["url_route"] = {"kwargs": route}
            return communicator

        self._communicator = background.run(make())

    def open(self) -> Socket:
        accepted, _ = self._background.run(self._communicator.connect(SECONDS))
        assert accepted
        return self

    def frame(self) -> dict[str, Any]:
        received = self._background.run(self._communicator.receive_from(SECONDS))
        return dict(json.loads(received))

    def close_code(self) -> int:
        output = self._background.run(self._communicator.receive_output(SECONDS))
        assert output["type"] == "websocket.close", output
        return int(output["code"])

    def code_after_frames(self) -> int:
        """Wait for the close of a socket that was open, and may still have sent something before."""
        while (output := self._background.run(self._communicator.receive_output(SECONDS)))["type"] != (
            "websocket.close"
        ):
            pass
        return int(output["code"])

    def say(self, **frame: Any) -> None:
        self._background.run(self._communicator.send_to(json.dumps(frame)))

    def close(self) -> None:
        self._background.run(self._communicator.disconnect(timeout=SECONDS))

    def lines_until(self, seq: int) -> list[tuple[int, str]]:
        """The log lines of the frames up to line `seq`."""
        lines: list[tuple[int, str]] = []
        while not lines or lines[-1][0] < seq:
            frame = self.frame()
            if frame["type"] == "log":
                messages = (line["message"] for line in frame["lines"])
                lines += list(enumerate(messages, start=frame["first_seq"]))
        return lines

    def status_frame(self) -> str:
        while (frame := self.frame())["type"] != "job":
            pass
        return str(frame["status"])


def job_socket(console: Console, user: Any, job_id: Any, after: int | str | None = None) -> Socket:
    query = "" if after is None else f"?after={after}"
    return Socket(console.background, JobConsumer, f"/ws/jobs/{job_id}{query}", user, job_id=job_id)


def organization_socket(console: Console, user: Any, slug: str) -> Socket:
    return Socket(console.background, OrganizationConsumer, f"/ws/organizations/{slug}", user, slug=slug)


@pytest.fixture
def claim(runner: RunnerClient, ours: Tenant) -> Claim:
    ours.request()
    return runner.take_and_start()


def test_lines_from_before_and_after_opening_come_as_one_stream(
    console: Console, runner: RunnerClient, claim: Claim, ours: Tenant
) -> None:
    runner.log(claim, 1, "one", "two")
    socket = job_socket(console, ours.viewer, claim.job_id).open()
    for n in range(3, 30):
        runner.log(claim, n, f"line {n}")
    assert socket.lines_until(29) == [(1, "one"), (2, "two"), *((n, f"line {n}") for n in range(3, 30))]
    socket.close()


def test_a_reconnect_goes_on_after_the_last_number(
    console: Console, runner: RunnerClient, claim: Claim, ours: Tenant
) -> None:
    for n in range(1, 11):
        runner.log(claim, n, f"line {n}")
    for after in (0, 1, 5, 9):
        socket = job_socket(console, ours.viewer, claim.job_id, after).open()
        assert [seq for seq, _ in socket.lines_until(10)] == list(range(after + 1, 11))
        socket.close()


@pytest.mark.parametrize(
    "after", ["%C2%B2", "9" * 5_000, "-1", "x"], ids=["power", "long", "negative", "word"]
)
def test_what_is_no_number_begins_at_the_beginning(
    console: Console, runner: RunnerClient, claim: Claim, ours: Tenant, after: str
) -> None:
    runner.log(claim, 1, "one")
    socket = job_socket(console, ours.viewer, claim.job_id, after).open()
    assert socket.lines_until(1) == [(1, "one")]
    socket.close()


def test_many_viewers_see_the_same(
    console: Console, runner: RunnerClient, claim: Claim, ours: Tenant
) -> None:
    sockets = [job_socket(console, ours.viewer, claim.job_id).open() for _ in range(8)]
    for n in range(1, 41):
        runner.log(claim, n, f"line {n}")
    for socket in sockets:
        assert [seq for seq, _ in socket.lines_until(40)] == list(range(1, 41))
        socket.close()


def test_a_reader_that_stalls_holds_up_nobody_else(
    console: Console, runner: RunnerClient, claim: Claim, ours: Tenant
) -> None:
    stalled = job_socket(console, ours.viewer, claim.job_id).open()
    other = job_socket(console, ours.viewer, claim.job_id).open()
    seqs = []
    for batch in range(12):
        runner.log(claim, 1 + 4 * batch, *["x" * 32_000] * 4)
        seqs += [seq for seq, _ in other.lines_until(4 * batch + 4)]
        other.say(type="ack", seq=seqs[-1])
    assert seqs == list(range(1, 49))
    stalled.close()
    other.close()


def test_however_many_watch_the_database_is_read_once(
    console: Console, runner: RunnerClient, claim: Claim, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Any] = []
    read = job_header._read_header

    def count_read(job_id: Any) -> Any:
        reads.append(job_id)
        return read(job_id)

    monkeypatch.setattr(job_header, "_read_header", count_read)
    sockets = [job_socket(console, ours.viewer, claim.job_id).open() for _ in range(20)]
    for socket in sockets:
        socket.status_frame()
    opened = len(reads)
    runner.log(claim, 1, "one")
    for socket in sockets:
        assert socket.lines_until(1) == [(1, "one")]
        socket.close()
    # One notification woke all twenty; the poll of a few that waited long may come in between.
    assert len(reads) - opened < 10


def test_the_status_comes_after_the_lines_that_led_to_it(
    console: Console, runner: RunnerClient, claim: Claim, ours: Tenant
) -> None:
    socket = job_socket(console, ours.viewer, claim.job_id).open()
    assert socket.status_frame() == "PROCESSING"
    runner.log(claim, 1, "the end")
    runner.succeed(claim)
    messages: list[str] = []
    while "SUCCESS" not in messages:
        frame = socket.frame()
        messages.append(frame.get("status") or frame["type"])
    assert "log" in messages[: messages.index("SUCCESS")]
    socket.close()


def test_a_cancel_is_a_nudge(console: Console, claim: Claim, ours: Tenant) -> None:
    socket = job_socket(console, ours.viewer, claim.job_id).open()
    assert socket.status_frame() == "PROCESSING"
    cancel_job(job=Job.objects.get(pk=claim.job_id), requested_by=ours.operator)
    assert socket.status_frame() == "PROCESSING"
    socket.close()


def test_a_reader_that_does_not_acknowledge_is_sent_a_window_and_no_more(
    console: Console, runner: RunnerClient, claim: Claim, ours: Tenant
) -> None:
    big, batches = "x" * 30_000, 80
    for n in range(batches):
        runner.log(claim, n + 1, big)
    socket = job_socket(console, ours.viewer, claim.job_id).open()
    received: list[int] = []

    async def drain() -> None:
        while True:
            text = await socket._communicator.receive_from(1)
            frame = json.loads(text)
            if frame["type"] == "log":
                received.append(frame["first_seq"])

    with pytest.raises((TimeoutError, asyncio.TimeoutError)):
        console.background.run(drain())
    assert 1_000_000 / 30_000 - 2 < len(received) < batches


def test_acknowledging_lets_the_rest_through(
    console: Console, runner: RunnerClient, claim: Claim, ours: Tenant
) -> None:
    for n in range(80):
        runner.log(claim, n + 1, "x" * 30_000)
    socket, seen = job_socket(console, ours.viewer, claim.job_id).open(), 0
    while seen < 80:
        frame = socket.frame()
        if frame["type"] == "log":
            assert frame["first_seq"] == seen + 1
            seen = frame["first_seq"] + len(frame["lines"]) - 1
            socket.say(type="ack", seq=seen)
    socket.close()


@pytest.mark.parametrize("who", ["a stranger", "nobody"])
def test_nobody_else_listens_to_a_job(
    console: Console, claim: Claim, theirs: Tenant, ours: Tenant, who: str
) -> None:
    user = theirs.admin if who == "a stranger" else AnonymousUser()
    socket = job_socket(console, user, claim.job_id).open()
    assert socket.close_code() == (4404 if who == "a stranger" else 4401)


def test_a_job_that_does_not_exist_is_not_there(console: Console, ours: Tenant) -> None:
    assert job_socket(console, ours.viewer, some_uuid()).open().close_code() == 4404


def test_what_a_page_says_wrong_is_ignored(console: Console, claim: Claim, ours: Tenant) -> None:
    socket = job_socket(console, ours.viewer, claim.job_id).open()
    socket._background.run(socket._communicator.send_to("not json"))
    socket.say(type="ack", seq="many")
    socket.say(type="ping")
    while socket.frame()["type"] != "pong":
        pass
    socket.close()


def test_an_organizations_page_is_told_which_lists_changed(console: Console, ours: Tenant) -> None:
    socket = organization_socket(console, ours.viewer, "ours").open()
    wait_until_it_is_held(console)
    ours.request()
    changed: set[str] = set()
    while "jobs" not in changed:
        changed |= set(socket.frame()["topics"])
    socket.close()


def test_a_strangers_organization_tells_nothing(console: Console, ours: Tenant, theirs: Tenant) -> None:
    assert organization_socket(console, theirs.admin, "ours").open().close_code() == 4404


def test_who_signed_out_everywhere_is_asked_to_connect_again(
    console: Console, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.accounts.consumers.RECHECK_SECONDS", 0.05)
    socket = Socket(console.background, OrganizationConsumer, "/ws", ours.viewer, slug="ours").open()
    end_all_sessions(user=User.objects.get(pk=ours.viewer.pk))
    assert socket.code_after_frames() == CONNECT_AGAIN
    socket.close()
