"""Writing the audit record: one event per thing that somebody did."""

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Model

from console.audit.actions import AuditAction
from console.audit.models import ActorKind, AuditEvent


def record(
    *, organization: Model, actor: AbstractBaseUser | None, action: AuditAction, target: Model, **data: Any
) -> AuditEvent:
    """Record what a person (or, with no actor, the console itself) did to a target."""
    target_kind = target._meta.model_name or ""
    assert target_kind in action.kinds, f"{action} is not about a {target_kind}"
    return AuditEvent.objects.create(
        organization_id=organization.pk,
        actor_kind=ActorKind.PERSON if actor else ActorKind.SYSTEM,
        actor_id=actor.pk if actor else None,
        actor_name=actor.get_username() if actor else "slipway",
        action=action,
        target_kind=target_kind,
        target_id=target.pk,
        data=data,
    )
