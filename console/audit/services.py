"""Writing the audit record: one event per thing that somebody did."""

from typing import Any

from django.db.models import Model

from console.accounts.models import Organization, User
from console.audit.models import ActorKind, AuditEvent


def record(
    *, organization: Organization, actor: User | None, action: str, target: Model, **data: Any
) -> AuditEvent:
    """Record what a person (or, with no actor, the console itself) did to a target."""
    return AuditEvent.objects.create(
        organization=organization,
        actor_kind=ActorKind.PERSON if actor else ActorKind.SYSTEM,
        actor_id=actor.pk if actor else None,
        actor_name=actor.get_username() if actor else "slipway",
        action=action,
        target_kind=target._meta.model_name or "",
        target_id=target.pk,
        data=data,
    )
