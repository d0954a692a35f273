"""Writers of state: an attempt of a job, or a person."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from console.accounts.models import User
from console.errors import StateTokenExpired
from console.prepared_statements import fetch_one

if TYPE_CHECKING:
    from console.state.models import StateLock

#: KEY SHARE: the claim cannot be taken away while we write, and heartbeats go on meanwhile.
HOLD_CLAIM = "SELECT 1 FROM jobs_jobclaim WHERE claim_id = %(claim)s FOR KEY SHARE"


@dataclass(frozen=True, slots=True)
class Writer:
    job_id: UUID | None = None
    claim_id: UUID | None = None
    user: User | None = None

    def holds(self, lock: "StateLock") -> bool:
        """Tell whether the lock is this writer's own."""
        if self.claim_id is not None:
            return lock.claim_id == self.claim_id
        return self.user is not None and lock.user_id == self.user.pk

    def require_claim(self) -> None:
        """Refuse an attempt whose claim is gone, inside the transaction that writes."""
        if self.claim_id is not None and fetch_one(HOLD_CLAIM, {"claim": self.claim_id}) is None:
            raise StateTokenExpired
