"""The texts to run in an account: exact, quoted for their language, and no wider than allowed."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import hcl2
import yaml

from console.identities.services import Allowed
from console.identities.trust import setup_snippets
from runner.terraform.binary import find_terraform
from tests.console.identities.identities_made import AZURE, new_identity, use
from tests.people import Tenant

HOST = "127.0.0.1:8000"


def texts(identity: Any) -> dict[str, str]:
    return {snippet.key: snippet.text for snippet in setup_snippets(identity)}


def trust_policy(identity: Any) -> dict[str, Any]:
    policy: dict[str, Any] = json.loads(texts(identity)["trust-policy"])
    return policy


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line) for line in text.replace("\\\n", " ").splitlines() if line and line[0] != "#"]


def test_the_trust_policy_is_for_this_issuer_audience_and_these_subjects(ours: Tenant) -> None:
    identity = new_identity(ours)
    (statement,) = trust_policy(identity)["Statement"]
    assert statement["Principal"] == {"Federated": f"arn:aws:iam::123456789012:oidc-provider/{HOST}"}
    assert statement["Condition"]["StringEquals"] == {f"{HOST}:aud": "sts.amazonaws.com"}
    organization = f"organization:ours@{ours.organization.pk}"
    assert statement["Condition"]["StringLike"][f"{HOST}:sub"] == [
        f"{organization}:identity:production@{identity.pk}:action:test",
        f"{organization}:spec:*:environment:*:action:*",
    ]


def test_it_is_as_narrow_as_the_identity(ours: Tenant) -> None:
    spec = ours.spec
    identity = new_identity(ours, allowed=Allowed(specs=["network"], environments=["production", "staging"]))
    _, *patterns = trust_policy(identity)["Statement"][0]["Condition"]["StringLike"][f"{HOST}:sub"]
    begin = f"organization:ours@{ours.organization.pk}:spec:network@{spec.pk}:environment"
    assert patterns == [f"{begin}:production:action:*", f"{begin}:staging:action:*"]


def test_from_the_runners_own_role_the_external_id_is_the_condition(ours: Tenant) -> None:
    identity = new_identity(ours, method="assume_role")
    (statement,) = trust_policy(identity)["Statement"]
    assert statement["Action"] == "sts:AssumeRole"
    assert statement["Condition"] == {"StringEquals": {"sts:ExternalId": identity.external_id}}
    assert "open-id-connect" not in texts(identity)["cli"]
    template = yaml.safe_load(texts(identity)["cloudformation"])
    assert "SlipwayIssuer" not in template["Resources"]
    trusted = template["Resources"]["SlipwayRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]
    assert trusted == {**statement, "Principal": {"AWS": {"Ref": "RunnerRoleArn"}}}
    assert [*template["Parameters"]] == ["RunnerRoleArn"]
    configuration = texts(identity)["terraform"]
    assert '"AWS" = var.runner_role_arn' in configuration
    assert hcl2.loads(configuration)["variable"]


def test_every_form_of_it_says_the_same(ours: Tenant) -> None:
    identity = new_identity(
        ours, role_arn="arn:aws:iam::123456789012:role/team/ops/slipway+x", session_seconds=7200
    )
    snippets, policy = texts(identity), trust_policy(identity)
    template = yaml.safe_load(snippets["cloudformation"])["Resources"]
    role = template["SlipwayRole"]["Properties"]
    assert role["AssumeRolePolicyDocument"] == policy
    assert (role["RoleName"], role["Path"], role["MaxSessionDuration"]) == ("slipway+x", "/team/ops/", 7200)
    assert template["SlipwayIssuer"]["Properties"]["Url"] == f"http://{HOST}"
    provider, created, attached = commands(snippets["cli"])
    assert provider[3:] == ["--url", f"http://{HOST}", "--client-id-list", "sts.amazonaws.com"]
    assert created[3:7] == ["--role-name", "slipway+x", "--path", "/team/ops/"]
    assert attached[-1] == "arn:aws:iam::aws:policy/ReadOnlyAccess"
    assert hcl2.loads(snippets["terraform"])["resource"]


def test_every_configuration_is_written_as_terraform_writes_it(ours: Tenant, tmp_path: Path) -> None:
    for identity in (
        new_identity(ours, "aws", name="by token"),
        new_identity(ours, "aws", name="by role", method="assume_role"),
        new_identity(ours, "gcp", name="google"),
        new_identity(ours, "azure", name="azure"),
    ):
        use(ours, identity)
        (tmp_path / f"{identity.slug}.tf").write_text(texts(identity)["terraform"])
    checked = subprocess.run(
        [find_terraform().path, "fmt", "-check", "-diff", "-no-color"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_google_gets_a_subject_that_it_takes(ours: Tenant) -> None:
    identity = new_identity(ours, "gcp")
    snippets = texts(identity)
    pool, provider, account, binding, viewer = commands(snippets["cli"])
    mapping = next(word for word in provider if word.startswith("--attribute-mapping="))
    assert "google.subject=assertion.identity_id" in mapping, "ours is longer than 127 bytes"
    assert f'--attribute-condition=assertion.organization_id == "{ours.organization.pk}"' in provider
    assert binding[-1].endswith(f"/workloadIdentityPools/slipway/attribute.identity_id/{identity.pk}")
    assert (pool[4], account[4], viewer[3]) == ("slipway", "slipway", "harbour-prod")
    assert hcl2.loads(snippets["terraform"])["resource"]


def test_entra_gets_each_subject_exactly(ours: Tenant) -> None:
    identity = new_identity(ours, "azure")
    use(ours, identity)
    *credentials, reader = commands(texts(identity)["cli"])
    parameters = [json.loads(credential[-1]) for credential in credentials]
    organization, spec = ours.organization, ours.spec
    begin = f"organization:ours@{organization.pk}"
    assert [credential["subject"] for credential in parameters] == [
        f"{begin}:identity:production@{identity.pk}:action:test",
        *(
            f"{begin}:spec:network@{spec.pk}:environment:development:action:{action}"
            for action in ("plan", "deploy", "destroy")
        ),
    ]
    assert all(credential["audiences"] == ["api://AzureADTokenExchange"] for credential in parameters)
    assert reader[-1] == f"/subscriptions/{AZURE['subscription_id']}"
    assert hcl2.loads(texts(identity)["terraform"])["resource"]


def test_entra_takes_twenty_credentials_and_no_more(ours: Tenant) -> None:
    identity = new_identity(ours, "azure")
    for number in range(7):
        use(ours, identity, ours.new_spec(f"spec-{number}"))
    assert len(commands(texts(identity)["cli"])) == 20 + 1
