"""An attempt's cloud identity: opens it when a step needs it, and tells Terraform and the log about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from runner.credentials import cloud_of, with_credentials
from runner.credentials.handing import Cloud, Handed, Occasion, spelled
from runner.credentials.keeper import Keeper
from runner.outcome import StepFailed
from runner.protocol import IdentityAccess, IdentityTokenAnswer, IdentityTokenRequest, JobType, LogLevel

if TYPE_CHECKING:
    from runner.attempt import Attempt

#: What changes nothing can do with a session that only reads.
_READING = (JobType.PLAN, JobType.DRIFT_CHECK)


class HeldIdentity:
    """Credentials in use by one attempt, until it is over."""

    def __init__(self, attempt: Attempt, identity: IdentityAccess) -> None:
        self._attempt = attempt
        self._keeper = Keeper(
            longest_seconds=attempt.equipment.settings.renew_seconds,
            warn=self._warn,
            on_renewal=self._tell_renewal,
        )
        directory = attempt.workdir.path / "credentials"
        directory.mkdir(mode=0o700)
        self._occasion = Occasion(
            identity=identity,
            job_number=attempt.claim.job_number,
            only_reads=attempt.claim.type in _READING,
            directory=directory,
            environ=attempt.equipment.environ,
            job_environ=attempt.environ,
            ask_token=self._ask_token,
            hide=attempt.redactor.add,
            keeper=self._keeper,
        )
        self._cloud: Cloud | None = None
        self._is_closed = False
        self._renewed_by = ""
        self._life = timedelta()

    @property
    def regions(self) -> list[str]:
        """Where its resources are looked for; none named means all that there are."""
        return [str(region) for region in self._occasion.settings.get("regions") or ()]

    @property
    def cloud(self) -> Cloud:
        """The identity's cloud; the first use asks the console for a token."""
        if self._cloud is None:
            self._cloud = cloud_of(self._occasion)
        return self._cloud

    def open(self) -> Handed:
        """Obtain the credentials. A cloud that does not answer is asked for minutes, but not after a stop."""
        handed = self._attempt.stop.unless_stopped(self._open)
        self._renewed_by = handed.renewed_by
        if handed.expires_at:
            self._life = handed.expires_at - datetime.now(UTC)
        self._tell(handed)
        return handed

    def close(self) -> None:
        self._is_closed = True
        self._keeper.end()
        if self._cloud:
            self._cloud.close()

    def _open(self) -> Handed:
        handed = self.cloud.open()
        if self._is_closed:  # The answer came after a stop.
            self.cloud.close()
        return handed

    def _ask_token(self, wait: bool) -> IdentityTokenAnswer:
        attempt = self._attempt
        return attempt.client.identity_token(
            attempt.claim.job_id,
            IdentityTokenRequest(claim_id=attempt.claim.claim_id),
            give_up=attempt.stop.requested if wait else lambda: True,
        )

    def _warn(self, message: str) -> None:
        self._attempt.log.write(message, LogLevel.WARN)

    def _tell(self, handed: Handed) -> None:
        words = f"Acting as {handed.principal}"
        if handed.expires_at is None:
            self._attempt.log.write(words)
            return
        renewal = ", and are renewed before" if handed.renewable else ""
        self._attempt.log.write(
            f"{words}; the credentials end at {spelled(handed.expires_at)}{renewal}",
            data=_data(handed.expires_at, renewable=handed.renewable),
        )

    def _tell_renewal(self, what: str) -> None:
        """Whatever Terraform obtains from now on is good for as long as the first was."""
        if what == self._renewed_by:
            expires_at = datetime.now(UTC) + self._life
            self._attempt.log.write(
                f"The credentials are renewed: they end at {spelled(expires_at)}",
                LogLevel.DEBUG,
                _data(expires_at, renewable=True),
            )


def hold_identity(attempt: Attempt) -> HeldIdentity:
    """For a step that cannot do without one."""
    if attempt.claim.identity is None:
        raise StepFailed(
            "identity_missing", "This job names no cloud identity. Choose one in the console.", fatal=True
        )
    attempt.identity = HeldIdentity(attempt, attempt.claim.identity)
    return attempt.identity


def assume_credentials(attempt: Attempt) -> None:
    if attempt.claim.identity is None:
        return
    with attempt.phase("credentials", f"Obtaining credentials of {attempt.claim.identity.name}"):
        handed = hold_identity(attempt).open()
        attempt.environ, outranked = with_credentials(
            attempt.environ, handed, runner_environ=attempt.equipment.environ
        )
        if outranked:
            attempt.log.write(
                f"The cloud identity takes the place of {', '.join(outranked)} in the job's environment",
                LogLevel.WARN,
            )


def _data(expires_at: datetime, *, renewable: bool) -> dict[str, object]:
    return {"kind": "credentials", "expires_at": spelled(expires_at), "renewable": renewable}
