"""CONNECTION_TEST: tries what an identity is for, and says of each thing whether it works and what to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from runner.credentials.ambient import Ambient
from runner.credentials.aws import Aws, AwsClients, error_code
from runner.credentials.azure import AzureClients
from runner.credentials.gcp import GcpClients
from runner.credentials.handing import Cloud
from runner.credentials.own_azure import OwnAzure
from runner.credentials.own_gcp import OwnGcp
from runner.identity import HeldIdentity, hold_identity
from runner.outcome import StepFailed
from runner.protocol import LogLevel
from runner.resources import CLOUD_UNKNOWN, GLOBAL, inventory_of, readings
from runner.resources.rest import Reader
from runner.stopping import Stopped

if TYPE_CHECKING:
    from runner.attempt import Attempt

PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"

#: A session that any role allows.
_SURE_SECONDS = 900

#: Whatever can be asked who it is and what it can reach.
Acting = AwsClients | GcpClients | AzureClients

_STORAGE_API = {"x-ms-version": "2021-08-06"}


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """One line of the answer."""

    code: str
    title: str
    outcome: str
    detail: str = ""
    remedy: str = ""


def test_connection(attempt: Attempt) -> None:
    held = hold_identity(attempt)
    with attempt.phase("test", "Testing the connection"):
        test = _Test(attempt, held)
        attempt.stop.unless_stopped(test.run)
    attempt.result.update(
        checks=[dataclasses.asdict(check) for check in test.checks],
        principal=test.principal,
        session_seconds=test.session_seconds,
    )
    if failed := [check for check in test.checks if check.outcome == FAIL]:
        raise StepFailed(
            "connection_test_failed",
            f"{len(failed)} of {len(test.checks)} checks failed. {failed[0].title}: {failed[0].detail}",
            fatal=True,
        )


class _Test:
    """Collects lines; a check that cannot be made because of an earlier one is unknown."""

    def __init__(self, attempt: Attempt, held: HeldIdentity) -> None:
        self._attempt = attempt
        self._held = held
        self.checks: list[Check] = []
        self.principal: dict[str, str] = {}
        self.session_seconds = 0

    def run(self) -> None:
        if self._opens():
            cloud = self._held.cloud
            self._ask_who(_acting(cloud))
            if isinstance(cloud, Aws):
                self._require_external_id(cloud)
            self._read(cloud)
        for backend in self._attempt.claim.snapshot.get("backends") or ():
            self._reach(str(backend.get("kind")), backend.get("settings") or {})

    def add(self, code: str, title: str, outcome: str, detail: str = "", remedy: str = "") -> None:
        self._attempt.stop.check()
        self.checks.append(Check(code, title, outcome, detail, remedy))
        level = LogLevel.INFO if outcome == PASS else LogLevel.WARN
        self._attempt.log.write(f"{title}: {outcome}{f' ({detail})' if detail else ''}", level)

    def _opens(self) -> bool:
        title = "Temporary credentials can be obtained"
        try:
            handed = self._held.open()
        except StepFailed as error:
            return self._opens_for_less(error, title)
        self.add("credentials", title, PASS, handed.principal)
        if handed.expires_at:
            self._tell_length(handed.expires_at)
        return True

    def _opens_for_less(self, error: StepFailed, title: str) -> bool:
        """Of a role that only refuses the length of the session, the rest can be tested."""
        detail, remedy = _halves(str(error))
        if error.code == "credentials_refused" and (cloud := self._shortened()):
            self.add("credentials", title, PASS, cloud.role_arn)
            self.add(
                "session",
                "A session is long enough",
                FAIL,
                detail,
                f"Raise the maximum session duration of {cloud.role_arn}, or ask for less in the identity.",
            )
            self.session_seconds = _SURE_SECONDS
            return True
        self.add("credentials", title, FAIL, detail, remedy)
        return False

    def _shortened(self) -> Aws | None:
        cloud = self._held.cloud
        if not isinstance(cloud, Aws) or cloud.session_seconds <= _SURE_SECONDS:
            return None
        try:
            cloud.assume(seconds=_SURE_SECONDS)
        except Exception:
            return None
        cloud.session_seconds = _SURE_SECONDS
        return cloud

    def _tell_length(self, expires_at: datetime) -> None:
        self.session_seconds = round((expires_at - datetime.now(UTC)).total_seconds())
        detail = f"{self.session_seconds} s, and renewed while a job runs"
        self.add("session", "A session is long enough", PASS, detail)

    def _ask_who(self, cloud: Acting | None) -> None:
        title = "The account is the right one"
        if cloud is None:
            self.add("principal", title, UNKNOWN, *_halves(CLOUD_UNKNOWN))
            return
        try:
            self.principal = _principal(cloud)
        except Stopped:
            raise
        except Exception as error:
            self.add("principal", title, FAIL, *_halves(_explained(cloud, error)))
            return
        told = ", ".join(f"{name} {value}" for name, value in self.principal.items() if value)
        wanted = cloud.role_arn.split(":")[4] if isinstance(cloud, Aws) else ""
        if wanted and self.principal.get("account") != wanted:
            remedy = "Check the role's ARN, and where the runner's endpoints lead."
            self.add("principal", title, FAIL, f"{told}, expected account {wanted}", remedy)
        else:
            self.add("principal", title, PASS, told)

    def _require_external_id(self, cloud: Aws) -> None:
        """A role that opens without the external id opens to whoever else is trusted with the same source."""
        if cloud.uses_token:
            return
        title = "The role insists on the external id"
        try:
            cloud.assume(external_id=False, seconds=_SURE_SECONDS)
        except Stopped:
            raise
        except Exception as error:
            if error_code(error) == "AccessDenied":
                self.add("external_id", title, PASS, "Without it, AWS refuses.")
            else:
                self.add("external_id", title, UNKNOWN, *_halves(cloud.explain(error)))
        else:
            self.add(
                "external_id",
                title,
                FAIL,
                "AWS let the runner in without it.",
                f'Add the condition "StringEquals": {{"sts:ExternalId": "{cloud.external_id}"}} to the trust '
                f"policy of {cloud.role_arn}.",
            )

    def _read(self, cloud: Cloud) -> None:
        try:
            inventory = inventory_of(self._held)
        except StepFailed as error:
            self.add("read", "The account can be read", UNKNOWN, *_halves(str(error)))
            return
        region = [*self._held.regions, str(getattr(_acting(cloud), "region", GLOBAL))][0]
        for kind, read in readings(inventory, region=region):
            title = f"May read {kind.replace('_', ' ')}"
            try:
                read()
            except Stopped:
                raise
            except Exception as error:
                self.add(f"read.{kind}", title, FAIL, *_halves(inventory.explain(error)))
            else:
                self.add(f"read.{kind}", title, PASS)

    def _reach(self, kind: str, settings: dict[str, Any]) -> None:
        place = str(settings.get("bucket") or settings.get("container_name") or kind)
        title, code = f"The state in {place} can be reached", f"state.{kind}"
        if not self._has_opened:
            self.add(code, title, UNKNOWN, "Not tried: credentials could not be obtained.")
            return
        cloud = _acting(self._held.cloud)
        reach = _reaching(cloud, kind, settings) if cloud else None
        if cloud is None or reach is None:
            self.add(code, title, UNKNOWN, f"Not tried: this identity is not for {kind}.")
            return
        try:
            reach()
        except Stopped:
            raise
        except Exception as error:
            detail, _ = _halves(_explained(cloud, error))
            self.add(code, title, FAIL, detail, f"Allow this identity to list, read and write {place}.")
        else:
            self.add(code, title, PASS)

    @property
    def _has_opened(self) -> bool:
        return any(check.code == "credentials" and check.outcome == PASS for check in self.checks)


def _acting(cloud: Cloud) -> Acting | None:
    match cloud:
        case Ambient():
            return cloud.acting
        case AwsClients() | GcpClients() | AzureClients():
            return cloud
    return None


def _principal(cloud: Acting) -> dict[str, str]:
    match cloud:
        case AwsClients():
            answer = cloud.client("sts", cloud.region).get_caller_identity()
            return {"account": answer["Account"], "arn": answer["Arn"]}
        case OwnGcp():
            return cloud.identify()
        case GcpClients():
            return {"account": cloud.project, "service_account": cloud.service_account}
        case OwnAzure():
            return {**cloud.identify(), "subscription": _subscription(cloud)}
        case AzureClients():
            return {
                "account": cloud.subscription_id,
                "subscription": _subscription(cloud),
                "application": cloud.client_id,
            }


def _subscription(cloud: AzureClients) -> str:
    """Its name, which proves that it can be seen."""
    url = f"{cloud.management}/subscriptions/{cloud.subscription_id}?api-version=2022-12-01"
    return str(Reader(lambda: cloud.bearer(cloud.management)).document(url).get("displayName", ""))


def _reaching(cloud: Acting, kind: str, settings: dict[str, Any]) -> Callable[[], object] | None:
    """A look into the place of a state; None when this cloud does not have such places."""
    match cloud, kind:
        case AwsClients(), "s3":
            return lambda: _reach_s3(cloud, settings)
        case GcpClients(), "gcs":
            bucket = quote(str(settings.get("bucket")), safe="")
            url = f"{cloud.endpoint('storage')}/b/{bucket}/o?maxResults=1"
            return lambda: Reader(cloud.bearer).document(url)
        case AzureClients(), "azurerm":
            account = settings.get("storage_account_name")
            url = f"https://{account}.blob.core.windows.net/{settings.get('container_name')}"
            reader = Reader(lambda: cloud.bearer("https://storage.azure.com"))
            return lambda: reader.get(f"{url}?restype=container&comp=list&maxresults=1", **_STORAGE_API)
    return None


def _reach_s3(cloud: AwsClients, settings: dict[str, Any]) -> object:
    style = {"s3": {"addressing_style": "path"}} if settings.get("use_path_style") else {}
    region = str(settings.get("region") or cloud.region)
    return cloud.client("s3", region, **style).list_objects_v2(Bucket=settings["bucket"], MaxKeys=1)


def _explained(cloud: Acting, error: Exception) -> str:
    return cloud.explain_denial(error) if isinstance(cloud, AwsClients) else cloud.explain(error)


def _halves(sentences: str) -> tuple[str, str]:
    """What happened, and what to do."""
    happened, _, remedy = sentences.partition(". ")
    return f"{happened.rstrip('.')}.", remedy
