"""Publishing and listening: on commit, together, and without losing anybody."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from console.live.listener import listener
from console.live.publish import publish_on_commit, publisher
from console.live.threads import in_thread
from tests.console_app import Console


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    sent: list[tuple[str, ...]] = []
    monkeypatch.setattr(publisher, "publish", lambda topics: sent.append(tuple(topics)))
    return sent


def test_nothing_is_said_before_the_commit(transactional_db: None, published: list[tuple[str, ...]]) -> None:
    with transaction.atomic():
        publish_on_commit("one", "two")
        assert published == []
    assert published == [("one", "two")]


def test_what_is_rolled_back_is_not_said(transactional_db: None, published: list[tuple[str, ...]]) -> None:
    with transaction.atomic():
        publish_on_commit("one")
        transaction.set_rollback(True)
    assert published == []


def test_outside_a_transaction_it_is_said_at_once(
    transactional_db: None, published: list[tuple[str, ...]]
) -> None:
    publish_on_commit("one")
    assert published == [("one",)]


def test_whoever_listens_is_woken_for_its_topics_only(transactional_db: None, console: Console) -> None:
    async def listen() -> tuple[set[str], set[str]]:
        async with (
            listener().subscribe(["one", "two"]) as first,
            listener().subscribe(["three"]) as second,
        ):
            await listener().ready()
            await first.wait(seconds=0.2)  # everyone is woken once when the connection is made
            await second.wait(seconds=0.2)
            publisher.publish(["two", "four"])
            return await first.wait(seconds=5), await second.wait(seconds=0.1)

    assert console.background.run(listen()) == ({"two"}, set())


def test_a_burst_wakes_without_losing_the_last(transactional_db: None, console: Console) -> None:
    """Topics are held back while they are noisy, and the last change is always told."""

    async def listen() -> int:
        async with listener().subscribe(["noisy"]) as subscription:
            await listener().ready()
            await subscription.wait(seconds=0.2)
            for _ in range(200):
                publisher.publish(["noisy"])
            woken = 0
            while await subscription.wait(seconds=0.5):
                woken += 1
            return woken

    assert 1 <= console.background.run(listen()) <= 20


def test_after_the_connection_was_lost_everyone_is_woken_and_hears_again(
    transactional_db: None, console: Console
) -> None:
    """Notifications that came while nobody listened would otherwise be noticed by polling only."""

    async def listen() -> tuple[set[str], set[str]]:
        async with listener().subscribe(["one"]) as subscription:
            await listener().ready()
            await subscription.wait(seconds=0.2)
            await in_thread(_end_the_listening_session)
            woken = await subscription.wait(seconds=10)
            publisher.publish(["one"])
            return woken, await subscription.wait(seconds=5)

    assert console.background.run(listen()) == ({"one"}, {"one"})


def _end_the_listening_session() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
        assert cursor.fetchall() == [(True,)]
