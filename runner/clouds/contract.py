"""The contract between a cloud's folder and the rest of the runner.

A folder offers one `Cloud`. Its `connect` and `connect_ambient` return clients that act as an identity or as
the runner's machine; the rest of it says what to do with them.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from runner.clouds.renewal import Renewer
from runner.clouds.secret_files import FindSecrets
from runner.outcome import StepFailed
from runner.protocol import IdentityAccess, IdentityTokenAnswer

#: The region of resources that belong to none.
GLOBAL = "global"
#: Every kind of resource that an inventory may list.
KINDS = ("region", "vpc", "subnet", "hosted_zone", "cluster", "key_pair", "certificate")

Resource = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRequest:
    """One attempt's request for credentials."""

    identity: IdentityAccess
    job_number: int
    #: Whether a session that can only read is enough, where the identity offers one.
    only_reads: bool
    #: The directory for files that Terraform reads; only the runner's user can enter it.
    directory: Path
    #: The runner's own environment: where the clouds' endpoints are.
    environ: Mapping[str, str]
    #: The environment of the job's Terraform without an identity.
    job_environ: Mapping[str, str]
    #: Asks the console for a token of this attempt; the flag says whether to wait for a console that is away.
    ask_token: Callable[[bool], IdentityTokenAnswer]
    #: Masks a value in everything that leaves the runner from now on.
    hide: Callable[..., None]
    renewer: Renewer

    @property
    def settings(self) -> dict[str, Any]:
        return self.identity.settings

    def setting(self, name: str) -> str:
        """Return a required setting."""
        value = self.settings.get(name)
        if not isinstance(value, str) or not value:
            raise StepFailed(
                "identity_incomplete",
                f"The cloud identity {self.identity.name} has no {name}. Complete it in the console.",
                fatal=True,
            )
        return value


class CredentialsMissing(Exception):
    """The runner's machine lacks what it needs to act as itself in a cloud; the message says what to do."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TerraformCredentials:
    """Changes to the environment of Terraform that make it act as an identity."""

    environ: dict[str, str]
    #: Only where the Spec says nothing else.
    defaults: dict[str, str] = dataclasses.field(default_factory=dict)
    #: Patterns of names to remove, because they would take precedence.
    outranked: tuple[str, ...] = ()
    #: Patterns of names in the runner's environment that lead Terraform to the same endpoints.
    passed: tuple[str, ...] = ()
    expires_at: datetime | None = None
    #: Whether they are replaced by newer ones before that.
    renewable: bool = True
    #: The renewal that replaces them, by its name in the renewer.
    renewed_by: str = ""
    #: The identity of the attempt, in the cloud's words.
    principal: str = ""


class Credentials(Protocol):
    """The credentials of one cloud identity, in use by one attempt."""

    @property
    def clients(self) -> CloudClients | None:
        """Clients that act by them; None where nobody said for which cloud they are."""
        ...

    def open(self) -> TerraformCredentials:
        """Obtain credentials once, so that a refusal is reported in our words, and keep them fresh."""
        ...

    def close(self) -> None: ...


class Inventory(Protocol):
    """The lists of one cloud."""

    #: Kinds that are listed once.
    everywhere: tuple[str, ...]
    #: Kinds that are listed in each region.
    regional: tuple[str, ...]

    def regions(self) -> list[str]: ...

    def pages(self, kind: str, region: str) -> Iterator[list[Resource]]:
        """Page by page; a resource with a `region` of its own is filed there."""
        ...

    def is_off(self, error: Exception, region: str) -> bool:
        """Return whether the region as a whole does not answer to this account."""
        ...

    def explain(self, error: Exception) -> str: ...


class CloudClients:
    """Access to one cloud as an identity, or as the runner's machine."""

    region = GLOBAL

    @property
    def expected_account(self) -> str:
        """The account that the identity's settings name, where they do."""
        return ""

    def identify(self) -> dict[str, str]:
        """Complete what the settings leave open, such as the project, and return what is known."""
        return {}

    def principal(self) -> dict[str, str]:
        """Ask the cloud who this is; the answer has an `account`."""
        raise NotImplementedError

    def explain(self, error: Exception) -> str:
        """Return a refusal of the cloud's in one sentence, with what to do."""
        raise NotImplementedError

    def explain_denial(self, error: Exception) -> str:
        """Return the same for an action that the principal has no right to."""
        return self.explain(error)


PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """One line of a connection test."""

    code: str
    title: str
    outcome: str
    detail: str = ""
    remedy: str = ""


def detail_and_remedy(explanation: str) -> tuple[str, str]:
    """Split an explanation into what happened and what to do."""
    detail, _, remedy = explanation.partition(". ")
    return f"{detail.rstrip('.')}.", remedy


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ShortSession:
    """A session that a role allows although it refuses the length that the identity asks for."""

    principal: str
    seconds: int
    remedy: str


def _no_short_session(clients: Any) -> ShortSession | None:
    return None


def _no_checks(clients: Any) -> Iterator[Check]:
    return iter(())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AmbientSources:
    """The places where the runner's machine has credentials of its own for a cloud."""

    #: Patterns of names in the runner's environment; a job sees nothing else of it.
    names: tuple[str, ...]
    #: Files below the home directory, by the name that leads a job to them: its own home is another one.
    files: Mapping[str, str]
    #: The functions that find the secrets in a file, by the variable that names it.
    secret_files: Mapping[str, FindSecrets]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """All that the runner knows of one cloud."""

    #: The provider in the protocol, the folder, and the extra of the install.
    name: str
    connect: Callable[[CredentialRequest], Credentials]
    connect_ambient: Callable[[CredentialRequest], CloudClients]
    ambient: AmbientSources
    #: The variables in which the provider and tools look for the region.
    region_variables: tuple[str, ...]
    #: Lists resources of these regions; of all where none is named.
    inventory: Callable[[Any, list[str]], Inventory]
    #: Reads from a state backend, by Terraform's name for its kind.
    probes: Mapping[str, Callable[[Any, dict[str, Any]], object]]
    #: Loggers of the cloud's libraries that write too much at INFO.
    loggers: tuple[str, ...] = ()
    #: Further checks of a connection test, once credentials were obtained.
    checks: Callable[[Any], Iterator[Check]] = _no_checks
    #: Tries a shorter session after one was refused.
    shorten: Callable[[Any], ShortSession | None] = _no_short_session


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically: a reader finds the old text or the new one, and nobody else can read it."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    fresh.replace(path)


def rfc3339(moment: datetime) -> str:
    """Return the time in UTC, to the second."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
