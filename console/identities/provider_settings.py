"""What may be said of an identity in each cloud: what the cloud would refuse is refused here, by field."""

import json
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

from console.errors import BadInput
from console.identities.models import Provider

Settings = dict[str, Any]

WEB_IDENTITY, ASSUME_ROLE = "web_identity", "assume_role"


def _shape(pattern: str) -> re.Pattern[str]:
    """Clouds know ASCII only: a letter that merely looks like one is none."""
    return re.compile(pattern, re.ASCII)


#: An IAM role: partition, account and path. The letters are those that IAM takes in a name.
ROLE_ARN = _shape(r"arn:(aws|aws-cn|aws-us-gov):iam::(\d{12}):role/((?:[\x21-\x7e]*/)?[\w+=,.@-]{1,64})")
POLICY_ARN = _shape(r"arn:(aws|aws-cn|aws-us-gov):iam::(aws|\d{12}):policy/[\w+=,.@/-]{1,128}")
AWS_REGION = _shape(r"[a-z]{2}(-[a-z]+){1,2}-\d")
GCP_PROVIDER = _shape(
    r"projects/\d{1,19}/locations/global/workloadIdentityPools/(?!gcp-)[a-z0-9-]{4,32}"
    r"/providers/(?!gcp-)[a-z0-9-]{4,32}"
)
GCP_PROJECT = _shape(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
SERVICE_ACCOUNT = _shape(
    r"[a-z][a-z0-9-]{4,28}[a-z0-9]@[a-z][a-z0-9.-]{4,60}[a-z0-9]\.iam\.gserviceaccount\.com"
)
GCP_REGION = _shape(r"[a-z]+-[a-z]+\d{1,2}")
AZURE_REGION = _shape(r"[a-z]{4,30}\d{0,2}")

#: By cloud: how it spells a region, and one for people to see.
REGIONS: dict[str, tuple[re.Pattern[str], str]] = {
    Provider.AWS: (AWS_REGION, "eu-central-1"),
    Provider.GCP: (GCP_REGION, "europe-west1"),
    Provider.AZURE: (AZURE_REGION, "westeurope"),
}

#: What STS takes; a role that is assumed by another one is good for an hour at most ("role chaining").
MIN_SESSION_SECONDS, MAX_SESSION_SECONDS, MAX_CHAINED_SECONDS = 900, 43_200, 3_600
DEFAULT_SESSION_SECONDS = 3_600
#: What STS takes as a session policy, in characters, and as policies by name.
MAX_POLICY_CHARS, MAX_POLICY_ARNS = 2_048, 10
MAX_REGIONS = 40

#: What does not decide a job's outcome: where to look for resources, and for how long a session is asked for.
UNDECIDING = frozenset({"regions", "session_seconds"})


def checked_settings(provider: str, given: Any) -> Settings:
    """The settings as they may be stored, all of them, or a refusal that names the field."""
    if provider not in CHECKS:
        raise BadInput(f"provider: expected one of {', '.join(CHECKS)}", field="provider")
    if not isinstance(given, dict):
        raise BadInput("settings: expected an object", field="settings")
    known, check = CHECKS[Provider(provider)]
    for name in given:
        if name not in known:
            raise _unknown(provider, str(name), known)
    return check(given)


def settings_fields(provider: str) -> tuple[str, ...]:
    return CHECKS[Provider(provider)][0]


def _aws(given: Settings) -> Settings:
    arn = _text(given, "role_arn", "arn:aws:iam::123456789012:role/slipway")
    found = ROLE_ARN.fullmatch(arn)
    if found is None:
        raise _wrong("role_arn", arn, "the ARN of a role, such as arn:aws:iam::123456789012:role/slipway")
    partition = str(given.get("partition") or found[1])
    if partition != found[1]:
        raise _refused(
            "partition",
            f"the role is in {found[1]}, not in {_shown(partition)}. Leave it out.",
        )
    method = given.get("method") or WEB_IDENTITY
    if method not in (WEB_IDENTITY, ASSUME_ROLE):
        raise _wrong("method", method, f"{WEB_IDENTITY} or {ASSUME_ROLE}")
    region = _aws_region("region", _text(given, "region", "eu-central-1"), partition)
    return {
        "role_arn": arn,
        "partition": partition,
        "region": region,
        "method": method,
        "session_seconds": _session_seconds(given, method),
        "plan_policy_arns": _policy_arns(given, partition),
        "plan_policy": _policy(given),
        "regions": _regions(
            given, lambda text: _aws_region("regions", text, partition), default=[region]
        ),
    }  # fmt: skip


def _gcp(given: Settings) -> Settings:
    provider = _text(given, "provider", "projects/1234/locations/global/workloadIdentityPools/a/providers/b")
    provider = provider.removeprefix("https:").removeprefix("//iam.googleapis.com/")
    if not GCP_PROVIDER.fullmatch(provider):
        raise _wrong(
            "provider",
            provider,
            "the provider's full name: "
            "projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/NAME",
        )
    account = _text(given, "service_account", "slipway@my-project.iam.gserviceaccount.com")
    if not SERVICE_ACCOUNT.fullmatch(account):
        raise _wrong(
            "service_account", account, "an address such as slipway@my-project.iam.gserviceaccount.com"
        )
    project = _text(given, "project", "my-project")
    if not GCP_PROJECT.fullmatch(project):
        raise _wrong("project", project, "a project's id, such as my-project; not its number, not its title")
    return {
        "provider": provider,
        "service_account": account,
        "project": project,
        "regions": _regions(given, _matching("regions", GCP_REGION, "a region such as europe-west1")),
    }


def _azure(given: Settings) -> Settings:
    ids = {name: _uuid(given, name) for name in ("tenant_id", "client_id", "subscription_id")}
    regions = _regions(given, _matching("regions", AZURE_REGION, "a region such as westeurope"))
    return {**ids, "regions": regions}


def _ambient(given: Settings) -> Settings:
    hint: str = given.get("provider_hint") or ""
    if hint not in ("", Provider.AWS, Provider.GCP, Provider.AZURE):
        raise _wrong("provider_hint", hint, "aws, gcp, azure, or nothing")
    shape, example = REGIONS.get(hint, (_shape(r"[a-z0-9-]{1,40}"), "eu-central-1"))
    regions = _regions(given, _matching("regions", shape, f"a region such as {example}"))
    return {"provider_hint": hint, "regions": regions}


def require_region(provider: str, settings: Settings, region: str) -> None:
    """Refuse a Spec's region that the cloud of its identity does not have."""
    shape, example = REGIONS.get(settings.get("provider_hint") or provider, (None, ""))
    if region and shape is not None and not shape.fullmatch(region):
        raise BadInput(
            f"region: {_shown(region)} is not a region of the identity's cloud, such as {example}. Choose "
            "another region, or another identity.",
            field="region",
        )


#: For each provider: the names that may be given, and what finds their values good.
CHECKS: dict[Provider, tuple[tuple[str, ...], Callable[[Settings], Settings]]] = {
    Provider.AWS: (
        ("role_arn", "partition", "region", "method", "session_seconds", "plan_policy_arns", "plan_policy",
         "regions"),
        _aws,
    ),
    Provider.GCP: (("provider", "service_account", "project", "regions"), _gcp),
    Provider.AZURE: (("tenant_id", "client_id", "subscription_id", "regions"), _azure),
    Provider.AMBIENT: (("provider_hint", "regions"), _ambient),
}  # fmt: skip


def _text(given: Settings, name: str, example: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _refused(name, f"is required, such as {example}.")
    return value.strip()


def _uuid(given: Settings, name: str) -> str:
    text = _text(given, name, "00000000-0000-0000-0000-000000000000")
    try:
        found = UUID(text)
    except ValueError:
        raise _wrong(name, text, "an id such as 72f988bf-86f1-41af-91ab-2d7cd011db47") from None
    if str(found) != text.lower():
        raise _wrong(name, text, "an id such as 72f988bf-86f1-41af-91ab-2d7cd011db47")
    return str(found)


def _aws_region(field: str, text: str, partition: str) -> str:
    if not AWS_REGION.fullmatch(text):
        raise _wrong(field, text, "a region such as eu-central-1")
    of_region = "aws-cn" if text.startswith("cn-") else "aws-us-gov" if text.startswith("us-gov-") else "aws"
    if of_region != partition:
        raise _refused(field, f"{text} is a region of {of_region}, and the role is in {partition}.")
    return text


def _session_seconds(given: Settings, method: str) -> int:
    value = given.get("session_seconds")
    value = DEFAULT_SESSION_SECONDS if value in (None, "") else value
    most = MAX_SESSION_SECONDS if method == WEB_IDENTITY else MAX_CHAINED_SECONDS
    if not isinstance(value, int) or isinstance(value, bool) or not MIN_SESSION_SECONDS <= value <= most:
        chained = "" if method == WEB_IDENTITY else ": a role that a role assumes has no longer sessions"
        raise _refused(
            "session_seconds", f"expected a whole number from {MIN_SESSION_SECONDS} to {most}{chained}."
        )
    return value


def _policy_arns(given: Settings, partition: str) -> list[str]:
    arns = given.get("plan_policy_arns") or []
    if not isinstance(arns, list) or len(arns) > MAX_POLICY_ARNS:
        raise _refused("plan_policy_arns", f"expected a list of at most {MAX_POLICY_ARNS} ARNs of policies.")
    for arn in arns:
        found = POLICY_ARN.fullmatch(arn) if isinstance(arn, str) else None
        if found is None or found[1] != partition:
            example = f"arn:{partition}:iam::aws:policy/ReadOnlyAccess"
            raise _wrong("plan_policy_arns", arn, f"the ARN of a policy, such as {example}")
    return arns


def _policy(given: Settings) -> str:
    text = given.get("plan_policy") or ""
    if not isinstance(text, str):
        raise _refused("plan_policy", "expected the policy as JSON text.")
    if not text.strip():
        return ""
    try:
        policy = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise BadInput(
            f"plan_policy: this is not JSON, look at line {line}. Correct it.",
            field="settings.plan_policy",
            line=line,
        ) from error
    if not isinstance(policy, dict) or not policy.get("Statement"):
        raise _refused("plan_policy", "expected an IAM policy with Version and Statement.")
    packed = json.dumps(policy, separators=(",", ":"))
    if len(packed) > MAX_POLICY_CHARS:
        raise _refused(
            "plan_policy",
            f"a session takes at most {MAX_POLICY_CHARS} characters. Name policies in plan_policy_arns.",
        )
    return packed


def _regions(given: Settings, check: Callable[[str], str], *, default: list[str] | None = None) -> list[str]:
    regions = given.get("regions") or default or []
    if not isinstance(regions, list) or len(regions) > MAX_REGIONS:
        raise _refused("regions", f"expected a list of at most {MAX_REGIONS} regions.")
    for region in regions:
        if not isinstance(region, str):
            raise _wrong("regions", region, "the name of a region")
    return list(dict.fromkeys(check(region) for region in regions))


def _matching(field: str, shape: re.Pattern[str], expected: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not shape.fullmatch(text):
            raise _wrong(field, text, expected)
        return text

    return check


def _unknown(provider: str, name: str, known: tuple[str, ...]) -> BadInput:
    if name == "external_id":
        return BadInput(
            "external_id: Slipway makes it, so that nobody can name somebody else's. Leave it out.",
            field="settings.external_id",
        )
    return BadInput(
        f"{name[:60]}: is not a setting for {provider}. Take one of {', '.join(known)}.",
        field=f"settings.{name[:60]}",
    )


def _wrong(name: str, value: Any, expected: str) -> BadInput:
    return _refused(name, f"{_shown(value)} is not {expected}.")


def _refused(name: str, sentence: str) -> BadInput:
    return BadInput(f"{name}: {sentence}", field=f"settings.{name}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
