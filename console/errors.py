"""Every refusal the console can give, with its one rendering for pages and for the API.

SlipwayError
├── BadInput 400            InvalidMessage · ConfirmationMismatch · NotState · StateCutOff
├── NotSignedIn 401         RunnerUnknown · RegistrationRefused · StateTokenUnknown (StateTokenExpired)
├── Forbidden 403           StateTokenElsewhere · IdentityNotAllowed
├── NotFound 404
├── Conflict 409            JobActive · JobFinal · StaleClaim · SnapshotUnreadable · MoveRefused · LogGap
│                           ReportConflict · PlanStale · PlanSpent · SpecExpired · SpecArchived · GateClosed
│                           IdentityInUse · IdentityChanged · IdentityNeedsNoToken · PartsMissing
│                           StateConflict (StateOlder · StateLineageDiffers · StateNotLocked)
├── TooLarge 413            LogFull · StateTooLarge
├── Unprocessable 422       IdempotencyMismatch
├── StateLocked 423
└── Draining 503

A class is one refusal: its docstring is its default sentence, `code` is for machines and never changes.
"""

from typing import Any, ClassVar


class SlipwayError(Exception):
    """The request was refused."""

    code: str = "refused"
    status: int = 400
    title: str = "Refused"

    def __init__(self, detail: str = "", **extra: Any) -> None:
        super().__init__(detail or (type(self).__doc__ or "").strip())
        #: More members of the problem document, such as the URL of the job that is in the way.
        self.extra = extra

    @property
    def headers(self) -> dict[str, str]:
        return {}

    def problem(self) -> dict[str, Any]:
        """The RFC 9457 problem document."""
        return {
            "type": f"urn:slipway:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": str(self),
            "code": self.code,
            **self.extra,
        }


class BadInput(SlipwayError):
    """Something in the request is not valid."""

    code, status, title = "bad_input", 400, "Not valid"


class InvalidMessage(BadInput):
    """The message does not have the shape that the protocol gives it."""

    code = "invalid_message"


class ConfirmationMismatch(BadInput):
    """The name does not match the Spec's name. Nothing was changed."""

    code = "confirmation_mismatch"


class NotState(BadInput):
    """The body is not Terraform state. Nothing was written."""

    code = "not_state"


class StateCutOff(BadInput):
    """The body arrived incomplete. Nothing was written; send it again."""

    code = "state_cut_off"


class NotSignedIn(SlipwayError):
    """Sign in first."""

    code, status, title = "not_signed_in", 401, "Not signed in"

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": "Bearer"}


class RunnerUnknown(NotSignedIn):
    """This runner credential is unknown or was revoked. Register the runner again."""

    code = "runner_unknown"


class RegistrationRefused(NotSignedIn):
    """This registration token is unknown, used or expired. Create a new one on the Runners page."""

    code = "registration_refused"


class StateTokenUnknown(NotSignedIn):
    """State requires basic authentication: an attempt's token, or any username with an API token."""

    code = "state_token_unknown"

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": 'Basic realm="Terraform state"'}


class StateTokenExpired(StateTokenUnknown):
    """This token has expired because its attempt has ended. Its writes are no longer accepted."""

    code = "state_token_expired"


class Forbidden(SlipwayError):
    """Your role does not allow this. Ask an admin of the organization."""

    code, status, title = "forbidden", 403, "Not allowed"


class StateTokenElsewhere(Forbidden):
    """This token is for the state of another Spec."""

    code = "state_token_elsewhere"


class IdentityNotAllowed(Forbidden):
    """This cloud identity may not be used here. Ask an admin of the organization to allow it."""

    code = "identity_not_allowed"


class NotFound(SlipwayError):
    """There is nothing here, or you do not have access to it."""

    code, status, title = "not_found", 404, "Not found"


class Conflict(SlipwayError):
    """The request conflicts with the current state."""

    code, status, title = "conflict", 409, "Conflict"


class JobActive(Conflict):
    """Another job of this Spec is active. Wait for it, or cancel it."""

    code = "job_active"

    @property
    def holder_url(self) -> str:
        return str(self.extra.get("holder_url", ""))


class JobFinal(Conflict):
    """The job has ended; its status is final."""

    code = "job_final"


class StaleClaim(Conflict):
    """This attempt no longer holds the job. Stop working on it; nothing it sends is kept."""

    code = "stale_claim"


class SnapshotUnreadable(Conflict):
    """The job's configuration can no longer be read. Correct the Spec, then request a new job."""

    code = "snapshot_unreadable"


class MoveRefused(Conflict):
    """A job cannot make this move from its current status."""

    code = "move_refused"


class LogGap(Conflict):
    """Lines are missing before this batch. Send again from `expected_seq`."""

    code = "log_gap"


class ReportConflict(Conflict):
    """This attempt has already reported a different ending. The first report stands."""

    code = "report_conflict"


class PlanStale(Conflict):
    """The plan is stale. Plan again, then apply."""

    code = "plan_stale"


class PlanSpent(Conflict):
    """The plan has already been applied, and a plan can be applied only once. Plan again."""

    code = "plan_spent"


class SpecExpired(Conflict):
    """The Spec has expired, so it accepts no more applies. Extend it, or destroy it."""

    code = "spec_expired"


class SpecArchived(Conflict):
    """The Spec is archived. An admin can restore it on its page."""

    code = "spec_archived"


class GateClosed(Conflict):
    """A gate must be open before this job can be queued."""

    code = "gate_closed"


class IdentityInUse(Conflict):
    """Specs use this cloud identity. Choose another identity for them first."""

    code = "identity_in_use"


class IdentityChanged(Conflict):
    """The cloud identity has changed since this was requested. Plan again."""

    code = "identity_changed"


class IdentityNeedsNoToken(Conflict):
    """This attempt needs no token: it has no cloud identity, or one that works without tokens."""

    code = "identity_needs_no_token"


class PartsMissing(Conflict):
    """Parts of this list are missing. Send all of them again."""

    code = "parts_missing"


class StateConflict(Conflict):
    """This state does not follow the stored state. Nothing was written."""

    code = "state_conflict"


class StateOlder(StateConflict):
    """This state is older than the stored state. Nothing was written."""

    code = "state_older"


class StateLineageDiffers(StateConflict):
    """This state's lineage differs from the stored state's. Nothing was written."""

    code = "state_lineage_differs"


class StateNotLocked(StateConflict):
    """The state is not locked. Acquire the lock before writing. Nothing was written."""

    code = "state_not_locked"


class TooLarge(SlipwayError):
    """The request is too large."""

    code, status, title = "too_large", 413, "Too large"


class LogFull(TooLarge):
    """The log of this job has reached its size limit. Later lines are discarded."""

    code = "log_full"


class StateTooLarge(TooLarge):
    """The state is too large. Nothing was written."""

    code = "state_too_large"


class Unprocessable(SlipwayError):
    """The request cannot be processed as it is."""

    code, status, title = "unprocessable", 422, "Cannot be done"


class IdempotencyMismatch(Unprocessable):
    """This Idempotency-Key was used for another request. Use a new key."""

    code = "idempotency_mismatch"


class StateLocked(SlipwayError):
    """The state is locked by someone else."""

    code, status, title = "state_locked", 423, "Locked"


class Draining(SlipwayError):
    """No new jobs are accepted right now: the installation is draining. Running jobs will finish."""

    code, status, title = "draining", 503, "Draining"
    retry_after_seconds: ClassVar[int] = 60

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after_seconds)}
