"""What an attempt brings along when it asks for credentials, and what it gets to hand to Terraform."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from runner.credentials.keeper import Keeper
from runner.outcome import StepFailed
from runner.protocol import IdentityAccess, IdentityTokenAnswer


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """One attempt's need for credentials."""

    identity: IdentityAccess
    job_number: int
    #: Whether a session that can only read is enough, where the identity offers one.
    only_reads: bool
    #: Where the files go that Terraform reads; only the runner's user can enter it.
    directory: Path
    #: The runner's own environment: where the clouds' endpoints are.
    environ: Mapping[str, str]
    #: What the job's Terraform would see without an identity.
    job_environ: Mapping[str, str]
    #: Asks the console for a token of this attempt; the flag says whether to wait for a console that is away.
    ask_token: Callable[[bool], IdentityTokenAnswer]
    #: Masks a value in everything that leaves the runner from now on.
    hide: Callable[..., None]
    keeper: Keeper

    @property
    def settings(self) -> dict[str, Any]:
        return self.identity.settings

    def setting(self, name: str) -> str:
        """A setting that must be there."""
        value = self.settings.get(name)
        if not isinstance(value, str) or not value:
            raise StepFailed(
                "identity_incomplete",
                f"The cloud identity {self.identity.name} has no {name}. Complete it in the console.",
                fatal=True,
            )
        return value


class CredentialsMissing(Exception):
    """What the runner would need to act as itself in a cloud is not there; the message says what to do."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """What is added to the environment of Terraform, and what is taken out because it would win over it."""

    environ: dict[str, str]
    #: Only where the Spec says nothing else.
    defaults: dict[str, str] = dataclasses.field(default_factory=dict)
    outranked: tuple[str, ...] = ()
    #: Of the runner's environment, what Terraform needs to find the same endpoints.
    passed: tuple[str, ...] = ()
    expires_at: datetime | None = None
    #: Whether they are replaced by newer ones before that.
    renewable: bool = True
    #: By what of that which the keeper keeps.
    renewed_by: str = ""
    #: Whom the cloud takes the attempt for, in the cloud's words.
    principal: str = ""


class Cloud(Protocol):
    """One cloud identity in use by one attempt."""

    def open(self) -> Handed:
        """Obtain credentials once, so that a refusal is told in our words, and have them kept fresh."""
        ...

    def close(self) -> None: ...


def write_private(path: Path, text: str) -> None:
    """Replace a file at once: a reader finds the old text or the new one, and nobody else finds any."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    fresh.replace(path)


def spelled(moment: datetime) -> str:
    """RFC 3339, whole seconds."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
