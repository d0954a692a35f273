"""An attempt's cloud identity: its credentials for Terraform, and what the log says about them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from runner.attempt import Attempt
from runner.clouds.contract import (
    Cloud,
    CredentialRequest,
    Credentials,
    Inventory,
    TerraformCredentials,
    rfc3339,
)
from runner.clouds.registry import CLOUDS, cloud_name, connect, with_credentials
from runner.clouds.renewal import Renewer
from runner.outcome import StepFailed
from runner.protocol import IdentityAccess, IdentityTokenAnswer, IdentityTokenRequest, JobType, LogLevel

#: The types that change nothing, for which a session that only reads suffices.
_READING = (JobType.PLAN, JobType.DRIFT_CHECK)


#: The error for ambient credentials whose identity names no cloud.
CLOUD_UNKNOWN = "It is not known which cloud the runner's own credentials are for. Say it in the identity."


class IdentityInUse:
    """An identity in use by one attempt, until that is over."""

    def __init__(self, attempt: Attempt, identity: IdentityAccess) -> None:
        self._attempt = attempt
        self._renewer = Renewer(
            longest_seconds=attempt.equipment.settings.renew_seconds,
            warn=self._warn,
            on_renewal=self._log_renewal,
        )
        directory = attempt.workdir.path / "credentials"
        directory.mkdir(mode=0o700)
        self._request = CredentialRequest(
            identity=identity,
            job_number=attempt.claim.job_number,
            only_reads=attempt.claim.type in _READING,
            directory=directory,
            environ=attempt.equipment.environ,
            job_environ=attempt.environ,
            ask_token=self._ask_token,
            hide=attempt.redactor.add,
            renewer=self._renewer,
        )
        self._credentials: Credentials | None = None
        self._is_closed = False
        self._renewed_by = ""
        self._lifetime = timedelta()

    @property
    def regions(self) -> list[str]:
        """The regions whose resources are listed; empty for all that there are."""
        return [str(region) for region in self._request.settings.get("regions") or ()]

    @property
    def cloud(self) -> Cloud | None:
        """The cloud that it acts in; None where nobody said, as may be for ambient credentials."""
        return CLOUDS.get(cloud_name(self._request.identity))

    @property
    def credentials(self) -> Credentials:
        """The identity's credentials; the first use asks the console for a token."""
        if self._credentials is None:
            self._credentials = connect(self._request)
        return self._credentials

    def inventory(self) -> Inventory:
        """Return the lists of what the identity can see."""
        clients = self.credentials.clients
        if self.cloud is None or clients is None:
            raise StepFailed("resources_unknown", CLOUD_UNKNOWN, fatal=True)
        try:
            clients.identify()
        except Exception as error:
            raise StepFailed("credentials_refused", clients.explain(error)) from error
        return self.cloud.inventory(clients, self.regions)

    def open(self) -> TerraformCredentials:
        """Obtain the credentials. An absent cloud is retried for minutes, but not after a stop."""
        credentials = self._attempt.stop.unless_stopped(self._open)
        self._renewed_by = credentials.renewed_by
        if credentials.expires_at:
            self._lifetime = credentials.expires_at - datetime.now(UTC)
        self._log_credentials(credentials)
        return credentials

    def close(self) -> None:
        self._is_closed = True
        self._renewer.end()
        if self._credentials:
            self._credentials.close()

    def _open(self) -> TerraformCredentials:
        opened = self.credentials.open()
        if self._is_closed:  # The answer came after a stop.
            self.credentials.close()
        return opened

    def _ask_token(self, wait: bool) -> IdentityTokenAnswer:
        attempt = self._attempt
        return attempt.client.identity_token(
            attempt.claim.job_id,
            IdentityTokenRequest(claim_id=attempt.claim.claim_id),
            give_up=attempt.stop.requested if wait else lambda: True,
        )

    def _warn(self, message: str) -> None:
        self._attempt.log.write(message, LogLevel.WARN)

    def _log_credentials(self, credentials: TerraformCredentials) -> None:
        words = f"Acting as {credentials.principal}"
        if credentials.expires_at is None:
            self._attempt.log.write(words)
            return
        renewal = ", and are renewed before" if credentials.renewable else ""
        self._attempt.log.write(
            f"{words}; the credentials end at {rfc3339(credentials.expires_at)}{renewal}",
            data=_expiry_data(credentials.expires_at, renewable=credentials.renewable),
        )

    def _log_renewal(self, what: str) -> None:
        """Log the new end: renewed credentials last as long as the first."""
        if what == self._renewed_by:
            expires_at = datetime.now(UTC) + self._lifetime
            self._attempt.log.write(
                f"The credentials are renewed: they end at {rfc3339(expires_at)}",
                LogLevel.DEBUG,
                _expiry_data(expires_at, renewable=True),
            )


def require_identity(attempt: Attempt) -> IdentityInUse:
    """Return the identity of a job that must have one."""
    if attempt.claim.identity is None:
        raise StepFailed(
            "identity_missing", "This job names no cloud identity. Choose one in the console.", fatal=True
        )
    identity = IdentityInUse(attempt, attempt.claim.identity)
    attempt.cleanup.callback(identity.close)
    return identity


def assume_credentials(attempt: Attempt) -> None:
    if attempt.claim.identity is None:
        return
    with attempt.phase("credentials", f"Obtaining credentials of {attempt.claim.identity.name}"):
        credentials = require_identity(attempt).open()
        attempt.environ, outranked = with_credentials(
            attempt.environ, credentials, runner_environ=attempt.equipment.environ
        )
        if outranked:
            attempt.log.write(
                f"The cloud identity replaces {', '.join(outranked)} in the job's environment",
                LogLevel.WARN,
            )


def _expiry_data(expires_at: datetime, *, renewable: bool) -> dict[str, object]:
    return {"kind": "credentials", "expires_at": rfc3339(expires_at), "renewable": renewable}
