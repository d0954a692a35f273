"""The jobs package's own hooks: updates of the Spec, and the token of a private source."""

from console.jobs import hooks
from console.jobs.errored_states import errored_state_context
from console.jobs.models import ErroredState
from console.jobs.source_access import source_access
from console.jobs.spec_updates import mark_destroyed, store_outputs
from console.vault import SEALED_FIELDS, SealedField
from runner.protocol import JobStatus, JobType


def join() -> None:
    hooks.on_end(store_outputs, types=[JobType.DEPLOY], statuses=[JobStatus.SUCCESS])
    hooks.on_end(mark_destroyed, types=[JobType.DESTROY], statuses=[JobStatus.SUCCESS])
    hooks.claim_fields.append(source_access)
    SEALED_FIELDS.append(
        SealedField(ErroredState, "sealed_body", lambda state: errored_state_context(state.attempt_id))
    )
