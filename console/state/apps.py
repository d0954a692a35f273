from typing import Any
from uuid import UUID

from django.apps import AppConfig
from django.conf import settings

from runner.protocol import StateAccess


class StateConfig(AppConfig):
    name = "console.state"

    def ready(self) -> None:
        from console.jobs import hooks
        from console.state.abandoned import after_loss
        from console.state.backends import backend_environment, backend_field
        from console.state.models import Backend, StateVersion
        from console.state.waiting import why_locked
        from console.vault import SEALED_FIELDS, SealedField

        hooks.claim_fields.append(state_access)
        hooks.claim_fields.append(backend_environment)
        hooks.snapshot_fields.append(backend_field)
        hooks.on_lost.append(after_loss)
        hooks.waiting_reasons.append(why_locked)
        SEALED_FIELDS.extend(
            [
                SealedField(StateVersion, "sealed_body", lambda version: f"state:{version.pk}"),
                SealedField(Backend, "sealed_environment", lambda backend: f"state-backend:{backend.pk}"),
            ]
        )


def state_access(job: Any, claim_id: UUID) -> dict[str, Any]:
    """Give the attempt's Terraform the address of its state and the credential for it, when that is here."""
    from console.state.tokens import token_for
    from console.state.wire import ATTEMPT_USER

    if job.spec_id is None or job.config_snapshot.get("backend", {}).get("kind", "console") != "console":
        return {}
    address = f"{settings.SLIPWAY_PUBLIC_URL}/api/state/{job.spec_id}"
    return {
        "state": StateAccess(
            address=address,
            lock_address=f"{address}/lock",
            username=ATTEMPT_USER,
            password=token_for(claim_id),
        )
    }
