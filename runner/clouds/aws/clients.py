"""boto3 clients that act as an identity or as the machine, and explanations of AWS's refusals."""

from __future__ import annotations

from typing import Any

from runner.clouds.contract import CloudClients
from runner.clouds.libraries import load_library

#: The SDKs' own mode that slows down when it is throttled.
_RETRIES = {"mode": "adaptive", "total_max_attempts": 8}


class AwsClients(CloudClients):
    """Access to AWS as a role, or as the runner itself."""

    role_arn = "the runner's own role"

    def __init__(self, region: str) -> None:
        self._boto3 = load("boto3")
        self._config = load("botocore.config").Config
        self.region = region
        self._own = self._boto3.session.Session()

    @property
    def session(self) -> Any:
        """Return a boto3 session that acts as the runner itself."""
        return self._own

    def client(self, service: str, region: str, **options: Any) -> Any:
        """Return a client that is patient when throttled."""
        return self.session.client(service, region_name=region, config=self._client_config(**options))

    def principal(self) -> dict[str, str]:
        answer = self.client("sts", self.region).get_caller_identity()
        return {"account": answer["Account"], "arn": answer["Arn"]}

    def explain(self, error: Exception) -> str:
        code, message = error_code(error), message_of(error)
        if code in _THROTTLED:
            return f"AWS is throttling requests: {message} ({code}). Try again later, or list fewer regions."
        if code in REMEDIES:
            return REMEDIES[code].format(role=self.role_arn, message=message)
        return f"AWS answered: {message or type(error).__name__} ({code or type(error).__name__})."

    def explain_denial(self, error: Exception) -> str:
        """Return the same for the assumed role's rights: there the trust policy is not to blame."""
        if error_code(error) in _DENIALS:
            return f"AWS answered: {message_of(error)}. Allow it in the policies of {self.role_arn}."
        return self.explain(error)

    def _client_config(self, **options: Any) -> Any:
        return self._config(retries=_RETRIES, connect_timeout=10, read_timeout=30, **options)


def load(module: str) -> Any:
    """Import one of AWS's own libraries."""
    return load_library(module, extra="aws", cloud="AWS")


def error_code(error: Exception) -> str:
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        return str(response.get("Error", {}).get("Code") or "")
    return type(error).__name__


def message_of(error: Exception) -> str:
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        return str(response.get("Error", {}).get("Message") or "").rstrip(".")
    return str(error).rstrip(".")


_CLOCK = "Check the clocks of the console and of the runner, then try again."
_COMPARE = "Compare the trust policy with the one on the identity's page"

#: By AWS's own codes, and by the names of boto3's errors.
REMEDIES = {
    "AccessDenied": (
        "AWS refused {role}: {message}. " + _COMPARE + ": who may assume it, the external id, the audience "
        "and the subject. If they are right, there is no such role."
    ),
    "InvalidIdentityToken": (
        "AWS did not accept the console's token for {role}: {message}. Check that the account has an OIDC "
        "provider for this console's address and audience, that AWS can reach the console, and the clocks."
    ),
    "ExpiredTokenException": "AWS considers the console's token for {role} expired: {message}. " + _CLOCK,
    "ExpiredToken": "AWS considers the credentials for {role} expired: {message}. " + _CLOCK,
    "RequestTimeTooSkewed": "AWS considers the runner's clock wrong: {message}. " + _CLOCK,
    "SignatureDoesNotMatch": "AWS did not accept the runner's signature: {message}. " + _CLOCK,
    "IDPRejectedClaim": "AWS does not allow the token's claims for {role}: {message}. " + _COMPARE + ".",
    "IDPCommunicationError": (
        "AWS cannot reach the console to read its keys: {message}. Its address must be reachable from the "
        "internet, over https."
    ),
    "ValidationError": (
        "AWS does not accept the identity's settings for {role}: {message}. Check the ARN, and that the role "
        "allows a session as long as the identity asks for."
    ),
    "MalformedPolicyDocument": (
        "AWS does not accept the identity's plan policy: {message}. Correct it in the console."
    ),
    "PackedPolicyTooLarge": (
        "The identity's plan policy is too large for AWS: {message}. Use managed policies instead."
    ),
    "NoCredentialsError": (
        "The runner has no AWS credentials of its own from which to assume {role}. Give its machine or task "
        "a role, or let the identity use the console's token."
    ),
    "ParamValidationError": (
        "The identity's settings for {role} cannot be sent to AWS: {message}. Correct them in the console."
    ),
    "RegionDisabledException": (
        "STS is off in the identity's region: {message}. Turn the region on, or choose another."
    ),
}
#: The codes of throttling, after all the tries that the SDK makes by itself.
_THROTTLED = (
    "RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException", "SlowDown",
)  # fmt: skip
#: The refusals that may be over by the next try.
PASSING = ("IDPCommunicationError",)
#: The codes of actions that a role has no right to.
_DENIALS = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "403")
