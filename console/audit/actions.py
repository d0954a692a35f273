"""The list of audit actions: each names what happened, in the past tense, and what it happened to.

`python -m console.audit.document` writes docs/audit.md from it. Another action is one member; a name that
was ever recorded stays, or is renamed by a migration and listed in `RENAMED`.
"""

from enum import StrEnum
from typing import Self


class AuditAction(StrEnum):
    """One kind of event. Its kinds are the tables of its targets."""

    kinds: tuple[str, ...]
    description: str

    def __new__(cls, value: str, kinds: str, description: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.kinds = tuple(kinds.split())
        member.description = description
        return member

    ORGANIZATION_CREATED = "organization.created", "organization", "An organization was created."
    ORGANIZATION_RENAMED = "organization.renamed", "organization", "An organization got another name."
    ORGANIZATION_DRAIN_STARTED = (
        "organization.drain_started", "organization", "New jobs of the organization were paused."
    )  # fmt: skip
    ORGANIZATION_DRAIN_ENDED = (
        "organization.drain_ended", "organization", "New jobs of the organization were resumed."
    )  # fmt: skip
    INVITATION_CREATED = "invitation.created", "invitation", "An admin created an invite link."
    INVITATION_WITHDRAWN = "invitation.withdrawn", "invitation", "An admin withdrew an invite link."
    MEMBER_JOINED = "member.joined", "user", "A person accepted an invitation."
    MEMBER_ROLE_CHANGED = "member.role_changed", "user", "An admin changed a member's role."
    MEMBER_REMOVED = "member.removed", "user", "An admin removed a member, whose API tokens were revoked."
    API_TOKEN_CREATED = "api_token.created", "apitoken", "A member created an API token."
    API_TOKEN_REVOKED = "api_token.revoked", "apitoken", "An API token was revoked."
    AUDIT_EXPORTED = "audit.exported", "organization", "An admin exported audit events."

    POOL_CREATED = "pool.created", "pool", "An admin created a pool of runners."
    REGISTRATION_TOKEN_CREATED = (
        "registration_token.created", "registrationtoken", "A person created a token for one new runner."
    )  # fmt: skip
    RUNNER_REGISTERED = "runner.registered", "runner", "A runner registered with a token."
    RUNNER_CREDENTIAL_ROTATED = (
        "runner.credential_rotated", "runner", "A runner obtained a new runner credential."
    )  # fmt: skip
    RUNNER_REVOKED = "runner.revoked", "runner", "An admin revoked a runner's credentials."
    RUNNER_DRAIN_STARTED = "runner.drain_started", "runner", "An admin paused new jobs for a runner."
    RUNNER_DRAIN_ENDED = "runner.drain_ended", "runner", "An admin resumed new jobs for a runner."
    RUNNER_STOPPED = "runner.stopped", "runner", "A runner stopped in good order."
    RUNNER_WENT_OFFLINE = "runner.went_offline", "runner", "A runner was silent for a minute."

    IDENTITY_CREATED = "identity.created", "cloudidentity", "An admin connected a cloud account."
    IDENTITY_CHANGED = "identity.changed", "cloudidentity", "An admin changed a cloud identity."
    IDENTITY_DELETED = "identity.deleted", "cloudidentity", "An admin deleted a cloud identity."
    IDENTITY_TOKEN_SIGNED = (
        "identity.token_signed", "cloudidentity", "An attempt was given a token for its cloud."
    )  # fmt: skip

    SPEC_CREATED = "spec.created", "spec", "A Spec was created."
    SPEC_REVISED = "spec.revised", "spec", "A Spec got a new revision."
    SPEC_CHANGED = "spec.changed", "spec", "A Spec's settings changed."
    SPEC_ARCHIVED = "spec.archived", "spec", "A Spec was archived."
    SPEC_UNARCHIVED = "spec.unarchived", "spec", "A Spec was restored from the archive."
    SPEC_EXPIRED = "spec.expired", "spec", "A Spec's expiry was reached and acted on."
    OUTPUT_REVEALED = "output.revealed", "spec", "A person read the value of a sensitive output."
    VARIABLE_SET_CREATED = "variable_set.created", "variableset", "A variable set was created."
    VARIABLE_SET_CHANGED = "variable_set.changed", "variableset", "A variable set changed."
    VARIABLE_SET_DELETED = "variable_set.deleted", "variableset", "A variable set was deleted."
    BLUEPRINT_ADDED = "blueprint.added", "ownblueprint", "A blueprint was added from Git."
    BLUEPRINT_REFRESHED = "blueprint.refreshed", "ownblueprint", "A blueprint was refreshed from Git."
    BLUEPRINT_REMOVED = "blueprint.removed", "ownblueprint", "A blueprint was removed."

    JOB_REQUESTED = "job.requested", "job", "A job was requested and queued."
    JOB_CLAIMED = "job.claimed", "job", "A runner claimed a job."
    JOB_STARTED = "job.started", "job", "A runner started a job's work."
    JOB_REQUEUED = "job.requeued", "job", "A job was queued again after an attempt failed or was lost."
    JOB_CANCEL_REQUESTED = "job.cancel_requested", "job", "A running job was asked to stop."
    JOB_TIMEOUT_REQUESTED = "job.timeout_requested", "job", "A job was asked to stop after its timeout."
    JOB_SUCCEEDED = "job.succeeded", "job", "A job ended SUCCESS."
    JOB_FAILED = "job.failed", "job", "A job ended FAILED."
    JOB_CANCELLED = "job.cancelled", "job", "A job ended CANCELLED, queued or running."
    JOB_ERRORED_STATE_KEPT = (
        "job.errored_state_kept", "job", "A state that could not be saved was kept with its job."
    )  # fmt: skip
    JOB_ERRORED_STATE_DOWNLOADED = (
        "job.errored_state_downloaded", "job", "A person downloaded a state that could not be saved."
    )  # fmt: skip

    PLAN_APPROVED = "plan.approved", "plan", "A plan was approved."
    PLAN_APPROVAL_WITHDRAWN = "plan.approval_withdrawn", "plan", "An approval of a plan was withdrawn."
    PLAN_CONFIRMED = "plan.confirmed", "plan", "A person typed the name that the destroy guard asks for."
    PLAN_AUTO_APPLIED = "plan.auto_applied", "job", "A plan was applied automatically, by this job."
    PLAN_AUTO_APPLY_BLOCKED = (
        "plan.auto_apply_blocked", "plan", "A plan of a Spec that auto-applies waits for a person."
    )  # fmt: skip

    STATE_WRITTEN = "state.written", "spec", "A person's Terraform wrote a state."
    STATE_UPLOADED = "state.uploaded", "spec", "A person imported a state file."
    STATE_ROLLED_BACK = "state.rolled_back", "spec", "An older version of a state was made the newest."
    STATE_DOWNLOADED = "state.downloaded", "spec", "A person downloaded a whole state."
    STATE_FORCE_UNLOCKED = "state.force_unlocked", "spec", "A person released another person's lock."
    STATE_LOCK_RELEASED = "state.lock_released", "spec", "The lock of an attempt that was lost was released."
    STATE_BACKEND_CHOSEN = (
        "state.backend_chosen", "spec organization", "The state backend of a Spec, or of all, was chosen."
    )  # fmt: skip


#: The tables that actions are about, in the order of the list.
TARGET_KINDS = tuple(dict.fromkeys(kind for action in AuditAction for kind in action.kinds))

#: Names of earlier releases, by which addresses may still filter.
RENAMED = {
    "job.claim": AuditAction.JOB_CLAIMED,
    "job.start": AuditAction.JOB_STARTED,
    "job.succeed": AuditAction.JOB_SUCCEEDED,
    "job.fail": AuditAction.JOB_FAILED,
    "job.cancel": AuditAction.JOB_CANCELLED,
    "job.requeue": AuditAction.JOB_REQUEUED,
    "plan.applied_by_itself": AuditAction.PLAN_AUTO_APPLIED,
    "plan.not_applied_by_itself": AuditAction.PLAN_AUTO_APPLY_BLOCKED,
    "runner.offline": AuditAction.RUNNER_WENT_OFFLINE,
}
