"""The token that the console signs for an attempt, in a file that always holds one that is good."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from runner.client import Refused, StaleClaim
from runner.credentials.handing import Occasion, write_private
from runner.outcome import StepFailed

#: What the keeper calls it.
TOKEN = "The identity token"  # noqa: S105 - a name


class IdentityToken:
    """Asked for once when it is made, and again by the keeper."""

    def __init__(self, occasion: Occasion) -> None:
        self._occasion = occasion
        self.path = occasion.directory / "identity-token"
        self.text = ""
        self.expires_at = datetime.now(UTC)
        try:
            seconds = self._replace(wait=True)
        except StaleClaim:
            raise
        except Refused as error:
            raise StepFailed(
                "identity_token_refused",
                f"The console gave no token for the cloud identity {occasion.identity.name}: {error.detail}",
                fatal=True,
            ) from error
        occasion.keeper.keep(TOKEN, self.renew, seconds=seconds)

    def renew(self) -> float:
        return self._replace(wait=False)

    def _replace(self, *, wait: bool) -> float:
        answer = self._occasion.ask_token(wait)
        self._occasion.hide(answer.token)
        write_private(self.path, answer.token)
        self.text = answer.token
        self.expires_at = datetime.now(UTC) + timedelta(seconds=answer.expires_in_seconds)
        return float(answer.expires_in_seconds)
