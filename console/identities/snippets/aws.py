"""What to run in an AWS account: the issuer, the role, and whom it trusts."""

import json
from typing import Any

import yaml

from console.identities.issuer import audience_of, issuer
from console.identities.models import CloudIdentity
from console.identities.provider_settings import WEB_IDENTITY
from console.identities.snippets.snippet import Snippet, hcl, hcl_value, script
from console.identities.subjects import subject_patterns

#: Where a runner's own role goes in a trust policy: only the person knows it.
RUNNER_ROLE = "arn:{partition}:iam::RUNNER_ACCOUNT:role/RUNNER_ROLE"
#: The same in a template, which asks for it.
PARAMETERS = {
    "RunnerRoleArn": {"Type": "String", "Description": "The ARN of the role that the runner itself has."}
}


def aws_snippets(identity: CloudIdentity) -> list[Snippet]:
    policy = trust_policy(identity)
    hint = "Of the role: who may assume it, and on which condition."
    if identity.settings["method"] != WEB_IDENTITY:
        hint += " Put the ARN of the runner's own role in the place of RUNNER_ROLE and its account."
    return [
        Snippet(
            "trust-policy", "Trust policy", hint, "json",
            json.dumps(policy, indent=2),
        ),
        Snippet("cli", "AWS CLI", "The trust policy is in trust-policy.json.", "sh", _aws_cli(identity)),
        Snippet(
            "terraform", "Terraform", "The same as a configuration; run it by hand once.", "hcl",
            _aws_terraform(identity, policy),
        ),
        Snippet(
            "cloudformation", "CloudFormation",
            "The same as a template: aws cloudformation deploy --template-file slipway.yaml "
            "--stack-name slipway-access --capabilities CAPABILITY_NAMED_IAM",
            "yaml", _aws_template(identity, policy),
        ),
    ]  # fmt: skip


def trust_policy(identity: CloudIdentity) -> dict[str, Any]:
    if identity.settings["method"] == WEB_IDENTITY:
        statement = {
            "Effect": "Allow",
            "Principal": {"Federated": _provider_arn(identity)},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": {
                "StringEquals": {f"{_host()}:aud": audience_of(identity)},
                "StringLike": {f"{_host()}:sub": subject_patterns(identity)},
            },
        }
    else:
        statement = {
            "Effect": "Allow",
            "Principal": {"AWS": _runner_role(identity)},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"sts:ExternalId": identity.external_id}},
        }
    return {"Version": "2012-10-17", "Statement": [statement]}


def _aws_cli(identity: CloudIdentity) -> str:
    path, name = _role(identity)
    commands = [
        ["aws", "iam", "create-role", "--role-name", name, "--path", path,
         "--assume-role-policy-document", "file://trust-policy.json",
         "--max-session-duration", str(_max_session(identity))],
        ["aws", "iam", "attach-role-policy", "--role-name", name, "--policy-arn", _read_only(identity)],
    ]  # fmt: skip
    if identity.settings["method"] == WEB_IDENTITY:
        provider = ["aws", "iam", "create-open-id-connect-provider", "--url", issuer(),
                    "--client-id-list", audience_of(identity)]  # fmt: skip
        commands.insert(0, provider)
    return script(
        commands, last="# Then attach what your Specs build with: plans need to read, deploys to write."
    )


def _aws_terraform(identity: CloudIdentity, policy: dict[str, Any]) -> str:
    path, name = _role(identity)
    trusted = hcl_value(policy)
    # By reference, so that the role is made after what it trusts.
    trusted = trusted.replace(hcl(_runner_role(identity)), "var.runner_role_arn")
    trusted = trusted.replace(hcl(_provider_arn(identity)), "aws_iam_openid_connect_provider.slipway.arn")
    return f"""{_aws_source(identity)}

resource "aws_iam_role" "slipway" {{
  name                 = {hcl(name)}
  path                 = {hcl(path)}
  max_session_duration = {_max_session(identity)}
  assume_role_policy = jsonencode({trusted})
}}

resource "aws_iam_role_policy_attachment" "slipway_read" {{
  role       = aws_iam_role.slipway.name
  policy_arn = {hcl(_read_only(identity))}
}}
"""


def _aws_source(identity: CloudIdentity) -> str:
    """What the role trusts: this issuer, or a role that the person names."""
    if identity.settings["method"] == WEB_IDENTITY:
        return f"""resource "aws_iam_openid_connect_provider" "slipway" {{
  url            = {hcl(issuer())}
  client_id_list = [{hcl(audience_of(identity))}]
}}"""
    return """variable "runner_role_arn" {
  type        = string
  description = "The role that the runner itself has."
}"""


def _aws_template(identity: CloudIdentity, policy: dict[str, Any]) -> str:
    path, name = _role(identity)
    by_token = identity.settings["method"] == WEB_IDENTITY
    role = {
        "Type": "AWS::IAM::Role",
        **({"DependsOn": "SlipwayIssuer"} if by_token else {}),
        "Properties": {
            "RoleName": name,
            "Path": path,
            "MaxSessionDuration": _max_session(identity),
            "AssumeRolePolicyDocument": policy if by_token else _by_parameter(policy),
            "ManagedPolicyArns": [_read_only(identity)],
        },
    }
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Lets Slipway act in this account with temporary credentials.",
        **({} if by_token else {"Parameters": PARAMETERS}),
        "Resources": {**(_issuer_resource(identity) if by_token else {}), "SlipwayRole": role},
    }
    return yaml.safe_dump(template, sort_keys=False, width=120)


def _issuer_resource(identity: CloudIdentity) -> dict[str, Any]:
    properties = {"Url": issuer(), "ClientIdList": [audience_of(identity)]}
    return {"SlipwayIssuer": {"Type": "AWS::IAM::OIDCProvider", "Properties": properties}}


def _by_parameter(policy: dict[str, Any]) -> dict[str, Any]:
    """The same policy for the role that whoever makes the stack names."""
    (statement,) = policy["Statement"]
    return {**policy, "Statement": [{**statement, "Principal": {"AWS": {"Ref": "RunnerRoleArn"}}}]}


def _runner_role(identity: CloudIdentity) -> str:
    return RUNNER_ROLE.format(partition=identity.settings["partition"])


def _host() -> str:
    """The issuer as IAM names it: without the scheme."""
    return issuer().split("://", maxsplit=1)[-1]


def _provider_arn(identity: CloudIdentity) -> str:
    return f"arn:{identity.settings['partition']}:iam::{identity.account}:oidc-provider/{_host()}"


def _role(identity: CloudIdentity) -> tuple[str, str]:
    """The path and the name of the role that its ARN names."""
    path, _, name = str(identity.settings["role_arn"]).partition(":role/")[2].rpartition("/")
    return (f"/{path}/" if path else "/"), name


def _max_session(identity: CloudIdentity) -> int:
    """A role's own limit is an hour at the least."""
    return max(3_600, int(identity.settings["session_seconds"]))


def _read_only(identity: CloudIdentity) -> str:
    return f"arn:{identity.settings['partition']}:iam::aws:policy/ReadOnlyAccess"
