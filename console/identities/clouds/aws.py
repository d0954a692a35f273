"""Amazon Web Services: a role that jobs assume, with a signed token or from the runner's own role."""

import json
from typing import Any

import yaml

from console.errors import BadInput
from console.identities.clouds.checks import (
    ascii_pattern,
    bad_setting,
    checked_regions,
    quoted,
    required_text,
    wrong_value,
)
from console.identities.clouds.cloud import (
    CHOICE,
    DEFAULT_SESSION_SECONDS,
    LONG,
    NUMBER,
    WORDS,
    Cloud,
    Setting,
    Settings,
    Trust,
)
from console.identities.clouds.snippet import Snippet, hcl, hcl_value, script

WEB_IDENTITY, ASSUME_ROLE = "web_identity", "assume_role"

#: An IAM role: partition, account and path. The letters are those that IAM takes in a name.
ROLE_ARN = ascii_pattern(
    r"arn:(aws|aws-cn|aws-us-gov):iam::(\d{12}):role/((?:[\x21-\x7e]*/)?[\w+=,.@-]{1,64})"
)
POLICY_ARN = ascii_pattern(r"arn:(aws|aws-cn|aws-us-gov):iam::(aws|\d{12}):policy/[\w+=,.@/-]{1,128}")
REGION = ascii_pattern(r"[a-z]{2}(-[a-z]+){1,2}-\d")

#: What STS takes; a role that is assumed by another one is good for an hour at most ("role chaining").
MIN_SESSION_SECONDS, MAX_SESSION_SECONDS, MAX_CHAINED_SECONDS = 900, 43_200, 3_600
#: What STS takes as a session policy, in characters, and as policies by name.
MAX_POLICY_CHARS, MAX_POLICY_ARNS = 2_048, 10
#: What STS takes as the name of a session.
MAX_SESSION_NAME = 64

#: Where a runner's own role goes in a trust policy: only the person knows it.
RUNNER_ROLE = "arn:{partition}:iam::RUNNER_ACCOUNT:role/RUNNER_ROLE"
#: The same in a template, which asks for it.
PARAMETERS = {
    "RunnerRoleArn": {"Type": "String", "Description": "The ARN of the role that the runner itself has."}
}

FORM = (
    Setting(
        name="role_arn",
        label="Role ARN",
        placeholder="arn:aws:iam::123456789012:role/slipway",
        hint="It need not exist yet: the next page has everything to create it.",
        required=True,
    ),
    Setting(name="region", label="Region", placeholder="eu-central-1", required=True),
    Setting(
        name="method",
        label="How it is assumed",
        control=CHOICE,
        hint="With a token, the account trusts this console and no runner needs credentials of its own.",
        choices=(
            (WEB_IDENTITY, "With a signed token of each job (web identity)"),
            (ASSUME_ROLE, "From the runner’s own role, with an external id"),
        ),
    ),
    Setting(
        name="session_seconds",
        label="Session length (seconds)",
        control=NUMBER,
        placeholder="3600",
        hint="900 to 43200.",
    ),
    Setting(
        name="plan_policy_arns",
        label="Policies that restrict a plan",
        control=WORDS,
        placeholder="arn:aws:iam::aws:policy/ReadOnlyAccess",
        hint="A plan’s session may then do no more than these policies allow.",
    ),
    Setting(
        name="plan_policy", label="Inline policy that restricts a plan", control=LONG, placeholder="JSON"
    ),
    Setting(
        name="regions",
        label="Regions to scan",
        control=WORDS,
        hint="For pickers, separated by spaces. Leave empty to scan the region above.",
    ),
)


class Aws(Cloud):
    key = "aws"
    label = "AWS"
    summary = "A role that jobs assume, with a signed token or from the runner’s own role."
    form = FORM
    has_external_id = True
    derived_settings = ("partition",)
    settings_without_effect = frozenset({"regions", "session_seconds"})
    region_pattern = REGION
    region_example = "eu-central-1"

    def checked(self, settings: Settings) -> Settings:
        arn = required_text(settings, "role_arn", "arn:aws:iam::123456789012:role/slipway")
        match = ROLE_ARN.fullmatch(arn)
        if match is None:
            expected = "the ARN of a role, such as arn:aws:iam::123456789012:role/slipway"
            raise wrong_value("role_arn", arn, expected)
        partition = str(settings.get("partition") or match[1])
        if partition != match[1]:
            raise bad_setting(
                "partition", f"the role is in {match[1]}, not in {quoted(partition)}. Leave it out."
            )
        method = settings.get("method") or WEB_IDENTITY
        if method not in (WEB_IDENTITY, ASSUME_ROLE):
            raise wrong_value("method", method, f"{WEB_IDENTITY} or {ASSUME_ROLE}")
        region = _checked_region("region", required_text(settings, "region", "eu-central-1"), partition)
        return {
            "role_arn": arn,
            "partition": partition,
            "region": region,
            "method": method,
            "session_seconds": _checked_session_seconds(settings, method),
            "plan_policy_arns": _checked_policy_arns(settings, partition),
            "plan_policy": _checked_policy(settings),
            "regions": checked_regions(
                settings, lambda text: _checked_region("regions", text, partition), default=[region]
            ),
        }

    def merge_settings(self, stored: Settings, changes: Settings) -> Settings:
        """Let the partition follow the role: a person who changes one means both."""
        unchanged = {
            key: value for key, value in stored.items() if key != "partition" or "role_arn" not in changes
        }
        return {**unchanged, **changes}

    def account(self, settings: Settings) -> str:
        return str(settings["role_arn"]).split(":")[4]

    def audience(self, settings: Settings) -> str:
        return "sts.amazonaws.com" if settings["method"] == WEB_IDENTITY else ""

    def is_assumed_by_runner(self, settings: Settings) -> bool:
        return bool(settings["method"] == ASSUME_ROLE)

    def session_seconds(self, settings: Settings) -> int:
        return int(settings["session_seconds"])

    def claim_settings(
        self, settings: Settings, *, region: str, external_id: str, session_name: str
    ) -> Settings:
        return {
            **settings,
            "region": region or settings["region"],
            "external_id": external_id,
            "session_name": session_name[:MAX_SESSION_NAME],
        }

    def setup(self, settings: Settings, trust: Trust) -> list[Snippet]:
        return Setup(settings, trust).snippets()


def _checked_region(name: str, text: str, partition: str) -> str:
    if not REGION.fullmatch(text):
        raise wrong_value(name, text, "a region such as eu-central-1")
    of_region = "aws-cn" if text.startswith("cn-") else "aws-us-gov" if text.startswith("us-gov-") else "aws"
    if of_region != partition:
        raise bad_setting(name, f"{text} is a region of {of_region}, and the role is in {partition}.")
    return text


def _checked_session_seconds(settings: Settings, method: str) -> int:
    value = settings.get("session_seconds")
    value = DEFAULT_SESSION_SECONDS if value in (None, "") else value
    most = MAX_SESSION_SECONDS if method == WEB_IDENTITY else MAX_CHAINED_SECONDS
    if not isinstance(value, int) or isinstance(value, bool) or not MIN_SESSION_SECONDS <= value <= most:
        chained = "" if method == WEB_IDENTITY else ": a role that a role assumes has no longer sessions"
        raise bad_setting(
            "session_seconds", f"expected a whole number from {MIN_SESSION_SECONDS} to {most}{chained}."
        )
    return value


def _checked_policy_arns(settings: Settings, partition: str) -> list[str]:
    arns = settings.get("plan_policy_arns") or []
    if not isinstance(arns, list) or len(arns) > MAX_POLICY_ARNS:
        raise bad_setting(
            "plan_policy_arns", f"expected a list of at most {MAX_POLICY_ARNS} ARNs of policies."
        )
    for arn in arns:
        match = POLICY_ARN.fullmatch(arn) if isinstance(arn, str) else None
        if match is None or match[1] != partition:
            example = f"arn:{partition}:iam::aws:policy/ReadOnlyAccess"
            raise wrong_value("plan_policy_arns", arn, f"the ARN of a policy, such as {example}")
    return arns


def _checked_policy(settings: Settings) -> str:
    text = settings.get("plan_policy") or ""
    if not isinstance(text, str):
        raise bad_setting("plan_policy", "expected the policy as JSON text.")
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
        raise bad_setting("plan_policy", "expected an IAM policy with Version and Statement.")
    packed = json.dumps(policy, separators=(",", ":"))
    if len(packed) > MAX_POLICY_CHARS:
        raise bad_setting(
            "plan_policy",
            f"a session takes at most {MAX_POLICY_CHARS} characters. Name policies in plan_policy_arns.",
        )
    return packed


class Setup:
    """The issuer, the role, and whom it trusts, in each of the forms that a person can run."""

    def __init__(self, settings: Settings, trust: Trust) -> None:
        self.settings = settings
        self.trust = trust
        self.by_token = settings["method"] == WEB_IDENTITY
        self.partition = settings["partition"]

    def snippets(self) -> list[Snippet]:
        policy = self.trust_policy()
        hint = "Of the role: who may assume it, and on which condition."
        if not self.by_token:
            hint += " Replace RUNNER_ROLE and its account with the ARN of the runner's own role."
        return [
            Snippet("trust-policy", "Trust policy", hint, "json", json.dumps(policy, indent=2)),
            Snippet("cli", "AWS CLI", "The trust policy is in trust-policy.json.", "sh", self._commands()),
            Snippet(
                "terraform", "Terraform", "The same as a configuration; run it by hand once.", "hcl",
                self._configuration(policy),
            ),
            Snippet(
                "cloudformation", "CloudFormation",
                "The same as a template: aws cloudformation deploy --template-file slipway.yaml "
                "--stack-name slipway-access --capabilities CAPABILITY_NAMED_IAM",
                "yaml", self._template(policy),
            ),
        ]  # fmt: skip

    def trust_policy(self) -> dict[str, Any]:
        if self.by_token:
            statement = {
                "Effect": "Allow",
                "Principal": {"Federated": self._provider_arn()},
                "Action": "sts:AssumeRoleWithWebIdentity",
                "Condition": {
                    "StringEquals": {f"{self._host()}:aud": self.trust.audience},
                    "StringLike": {f"{self._host()}:sub": [*self.trust.patterns]},
                },
            }
        else:
            statement = {
                "Effect": "Allow",
                "Principal": {"AWS": self._runner_role()},
                "Action": "sts:AssumeRole",
                "Condition": {"StringEquals": {"sts:ExternalId": self.trust.external_id}},
            }
        return {"Version": "2012-10-17", "Statement": [statement]}

    def _commands(self) -> str:
        path, name = self._role()
        commands = [
            ["aws", "iam", "create-role", "--role-name", name, "--path", path,
             "--assume-role-policy-document", "file://trust-policy.json",
             "--max-session-duration", str(self._max_session())],
            ["aws", "iam", "attach-role-policy", "--role-name", name, "--policy-arn", self._read_only()],
        ]  # fmt: skip
        if self.by_token:
            provider = ["aws", "iam", "create-open-id-connect-provider", "--url", self.trust.issuer,
                        "--client-id-list", self.trust.audience]  # fmt: skip
            commands.insert(0, provider)
        return script(
            commands, last="# Then attach what your Specs build with: plans need to read, deploys to write."
        )

    def _configuration(self, policy: dict[str, Any]) -> str:
        path, name = self._role()
        trusted = hcl_value(policy)
        # By reference, so that the role is made after what it trusts.
        trusted = trusted.replace(hcl(self._runner_role()), "var.runner_role_arn")
        trusted = trusted.replace(hcl(self._provider_arn()), "aws_iam_openid_connect_provider.slipway.arn")
        return f"""{self._trusted_source()}

resource "aws_iam_role" "slipway" {{
  name                 = {hcl(name)}
  path                 = {hcl(path)}
  max_session_duration = {self._max_session()}
  assume_role_policy = jsonencode({trusted})
}}

resource "aws_iam_role_policy_attachment" "slipway_read" {{
  role       = aws_iam_role.slipway.name
  policy_arn = {hcl(self._read_only())}
}}
"""

    def _trusted_source(self) -> str:
        """Declare what the role trusts: this issuer, or a role that the person names."""
        if self.by_token:
            return f"""resource "aws_iam_openid_connect_provider" "slipway" {{
  url            = {hcl(self.trust.issuer)}
  client_id_list = [{hcl(self.trust.audience)}]
}}"""
        return """variable "runner_role_arn" {
  type        = string
  description = "The role that the runner itself has."
}"""

    def _template(self, policy: dict[str, Any]) -> str:
        path, name = self._role()
        role = {
            "Type": "AWS::IAM::Role",
            **({"DependsOn": "SlipwayIssuer"} if self.by_token else {}),
            "Properties": {
                "RoleName": name,
                "Path": path,
                "MaxSessionDuration": self._max_session(),
                "AssumeRolePolicyDocument": policy if self.by_token else self._by_parameter(policy),
                "ManagedPolicyArns": [self._read_only()],
            },
        }
        template = {
            "AWSTemplateFormatVersion": "2010-09-09",
            "Description": "Lets Slipway act in this account with temporary credentials.",
            **({} if self.by_token else {"Parameters": PARAMETERS}),
            "Resources": {**(self._issuer_resource() if self.by_token else {}), "SlipwayRole": role},
        }
        return yaml.safe_dump(template, sort_keys=False, width=120)

    def _issuer_resource(self) -> dict[str, Any]:
        properties = {"Url": self.trust.issuer, "ClientIdList": [self.trust.audience]}
        return {"SlipwayIssuer": {"Type": "AWS::IAM::OIDCProvider", "Properties": properties}}

    def _by_parameter(self, policy: dict[str, Any]) -> dict[str, Any]:
        """Return the policy with the runner's role as a parameter of the stack."""
        (statement,) = policy["Statement"]
        return {**policy, "Statement": [{**statement, "Principal": {"AWS": {"Ref": "RunnerRoleArn"}}}]}

    def _runner_role(self) -> str:
        return RUNNER_ROLE.format(partition=self.partition)

    def _host(self) -> str:
        """Return the issuer as IAM names it: without the scheme."""
        return self.trust.issuer.split("://", maxsplit=1)[-1]

    def _provider_arn(self) -> str:
        account = self.settings["role_arn"].split(":")[4]
        return f"arn:{self.partition}:iam::{account}:oidc-provider/{self._host()}"

    def _role(self) -> tuple[str, str]:
        """Return the path and the name in the role's ARN."""
        path, _, name = str(self.settings["role_arn"]).partition(":role/")[2].rpartition("/")
        return (f"/{path}/" if path else "/"), name

    def _max_session(self) -> int:
        """Return the role's own limit, which is an hour at the least."""
        return max(3_600, int(self.settings["session_seconds"]))

    def _read_only(self) -> str:
        return f"arn:{self.partition}:iam::aws:policy/ReadOnlyAccess"
