"""The audit record can only grow, whoever asks."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection

from console.audit.models import AuditEvent
from tests.people import Tenant


@pytest.fixture
def event(ours: Tenant) -> AuditEvent:
    return AuditEvent.objects.get(target_id=ours.request().pk)


def test_an_event_cannot_be_changed(event: AuditEvent) -> None:
    with pytest.raises(IntegrityError, match="the audit record can only grow"):
        AuditEvent.objects.filter(pk=event.pk).update(actor_name="somebody else")
    assert AuditEvent.objects.get(pk=event.pk).actor_name == event.actor_name


def test_an_event_cannot_be_deleted(event: AuditEvent) -> None:
    with pytest.raises(IntegrityError, match="the audit record can only grow"):
        event.delete()
    assert AuditEvent.objects.filter(pk=event.pk).exists()


def test_not_even_in_sql(event: AuditEvent) -> None:
    for statement in ("UPDATE audit_auditevent SET data = '{}'", "DELETE FROM audit_auditevent"):
        with pytest.raises(IntegrityError, match="can only grow"), connection.cursor() as cursor:
            cursor.execute(statement)


def test_the_time_is_the_databases(event: AuditEvent) -> None:
    event.refresh_from_db()
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s BETWEEN now() - interval '1 minute' AND now()", [event.at])
        assert cursor.fetchone() == (True,)
