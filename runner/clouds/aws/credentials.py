"""A role, assumed by the console's token or from the runner's own role, for as long as a job takes.

Terraform's credentials never expire for good. By default it gets the path of the token file and assumes the
role itself, again and again. Where that does not suffice (an external id, a session policy, another session
length), the runner assumes the role and keeps a file of keys fresh, which the SDKs read again through
`credential_process` when their keys expire.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import shutil
from datetime import UTC, datetime
from typing import Any

from runner.clouds.aws.clients import PASSING, REMEDIES, AwsClients, error_code, load
from runner.clouds.contract import CredentialRequest, TerraformCredentials, rfc3339, write_private
from runner.clouds.identity_token import TOKEN, IdentityToken
from runner.outcome import StepFailed

WEB_IDENTITY = "web_identity"
ASSUME_ROLE = "assume_role"

#: The length of a session that asks STS for none: the SDKs can then assume the role themselves.
DEFAULT_SECONDS = 3600

SESSION = "The AWS session"

#: Names in the runner's environment: the endpoints, and the retries of the SDKs.
_PASSED = (
    "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_*", "AWS_CA_BUNDLE", "AWS_STS_REGIONAL_ENDPOINTS",
    "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_MAX_ATTEMPTS", "AWS_RETRY_MODE",
)  # fmt: skip
#: Each of these would take precedence over a role, or lead to another one.
_OUTRANKED = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN",
    "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_ROLE_*", "AWS_WEB_IDENTITY_*", "AWS_CONTAINER_*",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Temporary keys of a role, from STS."""

    access_key_id: str
    secret_access_key: str
    session_token: str
    expires_at: datetime
    arn: str

    @property
    def seconds(self) -> float:
        return (self.expires_at - datetime.now(UTC)).total_seconds()

    def for_process(self) -> str:
        """Return them as the answer of a `credential_process`."""
        return json.dumps(
            {
                "Version": 1,
                "AccessKeyId": self.access_key_id,
                "SecretAccessKey": self.secret_access_key,
                "SessionToken": self.session_token,
                "Expiration": rfc3339(self.expires_at),
            }
        )


class AwsRole(AwsClients):
    """One role, in use by one attempt."""

    def __init__(self, request: CredentialRequest) -> None:
        settings = request.settings
        super().__init__(region=str(settings.get("region") or "us-east-1"))
        self._request = request
        self.role_arn = request.setting("role_arn")
        self.external_id = str(settings.get("external_id") or "")
        self.uses_token = (settings.get("method") or WEB_IDENTITY) == WEB_IDENTITY
        self.session_seconds = int(settings.get("session_seconds") or DEFAULT_SECONDS)
        self._session_name = _session_name(str(settings.get("session_name") or ""), request.job_number)
        self._token = IdentityToken(request) if self.uses_token else None
        self._assumed: Any = None

    @property
    def clients(self) -> AwsClients:
        return self

    @property
    def expected_account(self) -> str:
        return self.role_arn.split(":")[4]

    def open(self) -> TerraformCredentials:
        try:
            keys = self.assume()
        except Exception as error:
            raise self._describe_refusal(error) from error
        if self._needs_keys_file:
            return self._with_keys_file(keys)
        return self._with_token_file(keys)

    def close(self) -> None:
        """Do nothing: files are removed with the attempt's directory, sessions expire."""

    def assume(self, *, external_id: bool = True, seconds: int | None = None) -> Keys:
        """Ask STS once, and let boto3's errors pass."""
        request: dict[str, Any] = {
            "RoleArn": self.role_arn,
            "RoleSessionName": self._session_name,
            "DurationSeconds": seconds or self.session_seconds,
            **self._session_policies(),
        }
        if self._token:
            answer = self._sts(signed=False).assume_role_with_web_identity(
                **request, WebIdentityToken=self._token.text
            )
        else:
            if external_id and self.external_id:
                request["ExternalId"] = self.external_id
            answer = self._sts(signed=True).assume_role(**request)
        return self._keys(answer)

    @property
    def session(self) -> Any:
        """Return a boto3 session that acts as the role, and renews itself."""
        if self._assumed is None:
            credentials = load("botocore.credentials")
            session = load("botocore.session").get_session()
            # boto3 has no other way in for credentials that renew themselves. The times are far
            # below the shortest session that AWS has (900 s), so that a session is used for most of its life.
            session._credentials = credentials.RefreshableCredentials.create_from_metadata(
                metadata=self._metadata(),
                refresh_using=self._metadata,
                method="assume-role",
                advisory_timeout=120,
                mandatory_timeout=60,
            )
            self._assumed = self._boto3.session.Session(botocore_session=session, region_name=self.region)
        return self._assumed

    @property
    def _needs_keys_file(self) -> bool:
        """Return whether the identity needs more than the SDKs take from the environment."""
        return bool(
            not self.uses_token or self._session_policies() or self.session_seconds != DEFAULT_SECONDS
        )

    def _session_policies(self) -> dict[str, Any]:
        """Return the policies of a session that only reads; they can only restrict the role."""
        settings = self._request.settings
        if not self._request.only_reads:
            return {}
        arns = [{"arn": str(arn)} for arn in settings.get("plan_policy_arns") or ()]
        policy = str(settings.get("plan_policy") or "")
        return ({"PolicyArns": arns} if arns else {}) | ({"Policy": policy} if policy else {})

    def _with_token_file(self, keys: Keys) -> TerraformCredentials:
        assert self._token is not None
        return self._terraform_credentials(
            keys,
            AWS_ROLE_ARN=self.role_arn,
            AWS_WEB_IDENTITY_TOKEN_FILE=str(self._token.path),
            AWS_ROLE_SESSION_NAME=self._session_name,
        )

    def _with_keys_file(self, keys: Keys) -> TerraformCredentials:
        config = self._request.directory / "aws-config"
        reading = shlex.join([shutil.which("cat") or "/bin/cat", str(self._keys_file)])
        write_private(config, f"[default]\nregion = {self.region}\ncredential_process = {reading}\n")
        write_private(self._keys_file, keys.for_process())
        self._request.renewer.add(SESSION, self._renew_file, seconds=keys.seconds)
        return self._terraform_credentials(keys, AWS_CONFIG_FILE=str(config), AWS_SDK_LOAD_CONFIG="1")

    def _terraform_credentials(self, keys: Keys, **environ: str) -> TerraformCredentials:
        return TerraformCredentials(
            # Without this, a job whose role fails would quietly act as the machine.
            environ={**environ, "AWS_EC2_METADATA_DISABLED": "true"},
            defaults={"AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region},
            outranked=_OUTRANKED,
            passed=_PASSED,
            expires_at=keys.expires_at,
            renewed_by=SESSION if self._needs_keys_file else TOKEN,
            principal=keys.arn,
        )

    @property
    def _keys_file(self) -> Any:
        return self._request.directory / "aws-keys.json"

    def _renew_file(self) -> float:
        keys = self.assume()
        write_private(self._keys_file, keys.for_process())
        return keys.seconds

    def _sts(self, *, signed: bool) -> Any:
        unsigned = {} if signed else {"signature_version": load("botocore").UNSIGNED}
        return self._own.client("sts", region_name=self.region, config=self._client_config(**unsigned))

    def _keys(self, answer: dict[str, Any]) -> Keys:
        keys = answer["Credentials"]
        self._request.hide(keys["SecretAccessKey"], keys["SessionToken"], keys["AccessKeyId"])
        return Keys(
            access_key_id=keys["AccessKeyId"],
            secret_access_key=keys["SecretAccessKey"],
            session_token=keys["SessionToken"],
            expires_at=keys["Expiration"],
            arn=answer.get("AssumedRoleUser", {}).get("Arn", self.role_arn),
        )

    def _metadata(self) -> dict[str, str]:
        keys = self.assume()
        return {
            "access_key": keys.access_key_id,
            "secret_key": keys.secret_access_key,
            "token": keys.session_token,
            "expiry_time": keys.expires_at.isoformat(),
        }

    def _describe_refusal(self, error: Exception) -> StepFailed:
        # The role does not change between two tries; a network or a throttle does.
        fatal = error_code(error) in REMEDIES and error_code(error) not in PASSING
        return StepFailed("credentials_refused", self.explain(error), fatal=fatal)


def _session_name(setting: str, job_number: int) -> str:
    """Return a name that AWS accepts: 2 to 64 of these characters."""
    name = re.sub(r"[^\w+=,.@-]", "-", setting or f"slipway-job-{job_number}", flags=re.ASCII)
    return name[:64] if len(name) > 1 else f"slipway-{name}"
