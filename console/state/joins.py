"""The hooks by which state takes part in the life of jobs."""

from console.jobs import hooks
from console.state.abandoned import recover_from_loss
from console.state.backends import backend_environment, backend_field
from console.state.claims import state_access
from console.state.models import Backend, StateVersion
from console.state.waiting import why_locked
from console.vault import SEALED_FIELDS, SealedField


def join() -> None:
    hooks.snapshot_fields.append(backend_field)
    hooks.claim_fields += [state_access, backend_environment]
    hooks.on_attempt_lost.append(recover_from_loss)
    hooks.waiting_reasons.append(why_locked)
    SEALED_FIELDS.extend(
        [
            SealedField(StateVersion, "sealed_body", lambda version: f"state:{version.pk}"),
            SealedField(Backend, "sealed_environment", lambda backend: f"state-backend:{backend.pk}"),
        ]
    )
