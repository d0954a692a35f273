"""Whose credential opens a spec's state: an attempt's token, or a person's API token.

An attempt's token is derived from its claim, so that a repeated claim answer carries the same one, and
nothing has to be stored. It opens one spec's state, and stops working when the claim's row is gone.
"""

import hmac
from uuid import UUID

from django.conf import settings

from console.accounts.authentication import find_token, sign_in_with_token
from console.accounts.models import User
from console.errors import StateTokenElsewhere, StateTokenExpired, StateTokenUnknown
from console.jobs.models import Attempt, JobClaim
from console.state.writers import Writer

#: How a person's API token begins.
PERSON_PREFIX = "slu_"


def token_for(claim_id: UUID, *, key: str | None = None) -> str:
    key = key or settings.SECRET_KEY
    signature = hmac.digest(key.encode(), f"state:{claim_id}".encode(), "sha256").hex()
    return f"sls_{claim_id.hex}_{signature}"


def writer_of(token: str, spec_id: UUID) -> Writer:
    """The attempt that a token belongs to, if it may open this spec's state now."""
    claim_id = _claim_id(token)
    claim = JobClaim.objects.filter(claim_id=claim_id, job__spec_id=spec_id).first()
    if claim is None:
        raise _why_not(claim_id, spec_id)
    return Writer(job_id=claim.job_id, claim_id=claim.claim_id)


def person_of(token: str) -> User:
    """The person whose API token this is; what they may do is `access`'s business."""
    api_token = find_token(token)
    if api_token is None:
        raise StateTokenUnknown(
            "This API token is unknown, expired or revoked. Create a new one in Settings."
        )
    return sign_in_with_token(api_token)


def _why_not(claim_id: UUID, spec_id: UUID) -> StateTokenExpired | StateTokenElsewhere:
    """The token is one of ours, so its bearer may know why it does not open this."""
    elsewhere = Attempt.objects.filter(claim_id=claim_id).exclude(job__spec_id=spec_id).exists()
    return StateTokenElsewhere() if elsewhere else StateTokenExpired()


def _claim_id(token: str) -> UUID:
    try:
        prefix, hex_id, _ = token.split("_")
        claim_id = UUID(hex=hex_id)
    except ValueError:
        raise StateTokenUnknown from None
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    if prefix != "sls" or not any(hmac.compare_digest(token, token_for(claim_id, key=key)) for key in keys):
        raise StateTokenUnknown
    return claim_id
