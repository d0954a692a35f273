"""The token that the console signs for an attempt, in a file that always holds a valid one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from runner.client import Refused, StaleClaim
from runner.clouds.contract import CredentialRequest, write_private
from runner.outcome import StepFailed

#: Its name in the renewer.
TOKEN = "The identity token"  # noqa: S105 - a name


class IdentityToken:
    """Requested once when it is made, and again by the renewer."""

    def __init__(self, request: CredentialRequest) -> None:
        self._request = request
        self.path = request.directory / "identity-token"
        self.text = ""
        self.expires_at = datetime.now(UTC)
        try:
            seconds = self._replace(wait=True)
        except StaleClaim:
            raise
        except Refused as error:
            raise StepFailed(
                "identity_token_refused",
                f"The console gave no token for the cloud identity {request.identity.name}: {error.detail}",
                fatal=True,
            ) from error
        request.renewer.add(TOKEN, self.renew, seconds=seconds)

    def renew(self) -> float:
        return self._replace(wait=False)

    def _replace(self, *, wait: bool) -> float:
        answer = self._request.ask_token(wait)
        self._request.hide(answer.token)
        write_private(self.path, answer.token)
        self.text = answer.token
        self.expires_at = datetime.now(UTC) + timedelta(seconds=answer.expires_in_seconds)
        return float(answer.expires_in_seconds)
