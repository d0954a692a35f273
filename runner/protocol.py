"""The wire types of the runner protocol: what runners and the console say to each other.

Standard library only, so that both sides can import it. Every message is a frozen dataclass;
`to_wire` and `from_wire` turn it into JSON-ready values and back. Unknown fields are ignored, so
that an older side can talk to a newer one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import types
import typing
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

PROTOCOL_VERSION = 1

#: The longest line, batch and log that the console accepts; a runner cuts before it sends.
MAX_LINE_CHARS = 32_768
MAX_BATCH_LINES = 2_000
MAX_BATCH_BYTES = 2 * 1024 * 1024
MAX_LOG_BYTES = 256 * 1024 * 1024

#: The files that a runner writes into the working directory, beside those of a configuration.
VARIABLES_FILE = "slipway.auto.tfvars.json"
VERSION_FILE = "slipway_version.tf.json"
BACKEND_FILE = "slipway_backend_override.tf.json"
OWN_FILES = frozenset({VARIABLES_FILE, VERSION_FILE, BACKEND_FILE})
#: The files that Terraform itself writes there. A configuration must have none of either.
TERRAFORMS_FOLDER = ".terraform"
ERRORED_STATE = "errored.tfstate"
TERRAFORMS_FILES = frozenset({ERRORED_STATE, "terraform.tfstate"})

#: Stands in the place of a sensitive value, in plans, logs and on pages.
MASK = "(sensitive)"
#: Stands in the place of one that will be another: people must see that much.
MASK_CHANGED = "(sensitive, changed)"

#: The chain of a log without lines. See `extend_chain`.
EMPTY_CHAIN = "0" * 64


class JobType(StrEnum):
    CONNECTION_TEST = "CONNECTION_TEST"
    FETCH_RESOURCES = "FETCH_RESOURCES"
    PLAN = "PLAN"
    DEPLOY = "DEPLOY"
    DESTROY = "DESTROY"
    DEPLOY_WORKER = "DEPLOY_WORKER"
    UPDATE_WORKER = "UPDATE_WORKER"
    DESTROY_WORKER = "DESTROY_WORKER"
    DRIFT_CHECK = "DRIFT_CHECK"


class JobStatus(StrEnum):
    QUEUED = "QUEUED"  # a runner's claim, or a cancel, moves it on
    CLAIMED = "CLAIMED"  # the runner that holds the claim moves it on, or the janitor takes it back
    PROCESSING = "PROCESSING"  # the runner that holds the claim ends it, or the janitor does
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


FINAL_STATUSES = frozenset({JobStatus.SUCCESS, JobStatus.FAILED, JobStatus.CANCELLED})


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"


class CancelReason(StrEnum):
    """The reason for which a heartbeat asks the runner to stop its attempt."""

    PERSON = "person"
    TIMEOUT = "timeout"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunnerFacts:
    """The facts that a runner sends about itself, at registration and at every start.

    With no slots it comes from a command beside the runner, and the console keeps what it knows.
    """

    version: str
    terraform_version: str
    platform: str
    slots: int
    types: list[str]
    #: The pools that it is to serve; none named means all that it belongs to.
    pools: list[str] = dataclasses.field(default_factory=list)
    #: Fresh at each start of the program, for its `Goodbye`; at most 64 characters.
    start_id: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Goodbye:
    """The runner has stopped in good order. It means nothing when another start has said hello since."""

    start_id: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationRequest:
    token: str
    name: str
    facts: RunnerFacts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationAnswer:
    runner_id: str
    name: str
    credential: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RotationAnswer:
    """A second credential. The first one goes on working until the runner has said hello with this one."""

    credential: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HelloAnswer:
    """The answer to a runner's facts: who the console takes it for, and the console's clock."""

    runner_id: str
    name: str
    organization: str
    pools: list[str]
    server_time: str
    lease_seconds: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """`claim_key` is fresh for each new claim; a repeat with the same key gets the same claim."""

    claim_key: str
    types: list[str]
    wait_seconds: float = 0.0
    pools: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StateAccess:
    """The address of this attempt's Terraform state, and its credential while the claim lasts."""

    address: str
    lock_address: str
    username: str
    password: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlanReference:
    """The reviewed plan that a DEPLOY applies; its file is at `GET /api/jobs/{job_id}/plan`.

    `provider_lock` is the text of the `.terraform.lock.hcl` that the PLAN uploaded: Terraform refuses a
    saved plan when `init` has meanwhile chosen other provider versions.
    """

    plan_id: str
    file_sha256: str
    snapshot_hash: str
    state_lineage: str
    state_serial: int
    provider_lock: str = ""
    #: The rest of the fingerprint; empty from a console that does not send it.
    provider_lock_sha256: str = ""
    terraform_version: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedChange:
    """One line of a reviewed plan. `deposed`: about what an interrupted replacement left behind."""

    address: str
    action: str
    deposed: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RetriedPlan:
    """The reviewed plan of a DEPLOY or DESTROY that ended part-way, for its retry.

    The plan itself is spent. The retry plans again, and applies the new plan only if that is a part of
    `changes`; otherwise it uploads the plan and fails with `review_needed`.
    """

    plan_number: int
    changes: list[ReviewedChange]
    provider_lock: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class IdentityAccess:
    """The cloud identity that an attempt acts as: how temporary credentials are obtained, and none itself.

    `settings` depend on the provider ("aws", "gcp", "azure" or "ambient"); `audience` is that of the token
    which `POST /api/jobs/{job_id}/identity-token` signs for this attempt, empty when none is needed.
    """

    identity_id: str
    name: str
    provider: str
    settings: dict[str, Any]
    audience: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class IdentityTokenRequest:
    claim_id: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class IdentityTokenAnswer:
    """A signed token for this attempt alone; a new one may be had for as long as the claim lives."""

    token: str
    expires_in_seconds: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FoundResources:
    """The resources of one kind in one region that a FETCH_RESOURCES found; a repeat replaces them.

    `error` says why it is not complete. Large accounts come in parts: `part` counts from 0, and the last
    one says so.
    """

    claim_id: str
    region: str
    kind: str
    resources: list[Any]
    part: int = 0
    is_last: bool = True
    error: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One job, handed to one runner: everything that the attempt needs."""

    job_id: str
    job_number: int
    type: str
    claim_id: str
    attempt: int
    lease_seconds: int
    timeout_seconds: int
    next_log_seq: int
    organization: str
    spec_id: str | None
    spec: str | None
    snapshot: dict[str, Any]
    snapshot_hash: str
    variables: dict[str, Any]
    environment: dict[str, str]
    sensitive_variables: list[str]
    state: StateAccess | None
    plan: PlanReference | None
    retry: RetriedPlan | None = None
    identity: IdentityAccess | None = None
    #: The credential of a private Git source: a token, or `name:password`. Only for fetching that source.
    source_token: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRequest:
    claim_id: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAnswer:
    lease_seconds: int
    cancel: str | None
    drain: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One masked line. Its number is its place in the log: the batch's `first_seq` plus its index."""

    at: str
    level: str
    message: str
    data: dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogBatch:
    claim_id: str
    first_seq: int
    lines: list[LogLine]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogAnswer:
    next_seq: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogReceipt:
    """The end of the attempt's log: the number after its last line, and the chain over its batches."""

    next_seq: int
    chain: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StatusReport:
    """PROCESSING once, then exactly one final status. `fatal` means that a retry cannot help."""

    claim_id: str
    status: str
    result: dict[str, Any] | None = None
    #: The values of a DEPLOY's sensitive outputs by name: encrypted on arrival, never a part of `result`.
    sensitive_outputs: dict[str, Any] | None = None
    error_code: str | None = None
    error_message: str | None = None
    fatal: bool = False
    log: LogReceipt | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer:
    """The status that the job has now; QUEUED when a failed attempt will be retried."""

    status: str


class ProtocolError(ValueError):
    """A message does not have the shape that the protocol gives it."""


Message = TypeVar("Message")


def to_wire(message: Any) -> dict[str, Any]:
    return dataclasses.asdict(message)


def from_wire(kind: type[Message], value: object, *, where: str = "") -> Message:
    """Build a message from decoded JSON, or say which field is wrong."""
    if not isinstance(value, Mapping):
        raise ProtocolError(f"{where or kind.__name__}: expected an object")
    fields = {}
    for field in _fields(kind):
        path = f"{where}.{field.name}" if where else field.name
        if field.name in value:
            fields[field.name] = _read_value(_hints(kind)[field.name], value[field.name], path)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ProtocolError(f"{path}: is required")
    return kind(**fields)


def git_login(token: str) -> tuple[str, str]:
    """The name and the password with which a token signs in at a Git host; most hosts take any name."""
    name, separator, password = token.partition(":")
    return (name, password) if separator else ("x-access-token", token)


def extend_chain(chain: str, messages: Iterable[str]) -> str:
    """The log's chain after one more batch: SHA-256(chain + SHA-256(messages, each ended by a newline)).

    Both sides extend it batch by batch, so the final report can show that every line arrived
    without anyone reading the whole log again.
    """
    batch = hashlib.sha256("".join(f"{message}\n" for message in messages).encode()).digest()
    return hashlib.sha256(bytes.fromhex(chain) + batch).hexdigest()


_HINTS: dict[type, dict[str, Any]] = {}


def _hints(kind: type) -> dict[str, Any]:
    if kind not in _HINTS:
        _HINTS[kind] = typing.get_type_hints(kind)
    return _HINTS[kind]


def _fields(kind: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(kind)


def _read_value(hint: Any, value: Any, path: str) -> Any:
    if hint is Any:
        return value
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        (hint,) = (option for option in typing.get_args(hint) if option is not type(None))
        return _read_value(hint, value, path)
    if dataclasses.is_dataclass(hint):
        return from_wire(typing.cast(type[Any], hint), value, where=path)
    if origin is list:
        (item,) = typing.get_args(hint)
        return [
            _read_value(item, part, f"{path}[{index}]") for index, part in enumerate(_is(list, value, path))
        ]
    if origin is dict:
        return _is(dict, value, path)
    if hint is float:
        return float(_is((int, float), value, path))
    return _is(hint, value, path)


def _is(kind: Any, value: Any, path: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        name = kind.__name__ if isinstance(kind, type) else "number"
        raise ProtocolError(f"{path}: expected {name}, got {type(value).__name__}")
    return value
