"""AWS: roles assumed by the console's token or with an external id, through real boto3 and real Terraform."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import boto3
import httpx
import jwt
import pytest
import yaml
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from console.identities.jobs import request_connection_test, request_fetch
from console.identities.keys import begin_rotation, current_key, finish_rotation
from console.identities.models import CloudIdentity, ResourceList
from console.identities.resources import find_resources
from console.identities.services import create_identity
from console.jobs.models import Job
from runner.client import ConsoleClient, StaleClaim
from runner.clouds.aws.credentials import AwsRole
from runner.outcome import StepFailed
from runner.protocol import ClaimRequest, IdentityTokenRequest
from tests.console.state.emulators import BUCKET, REGION
from tests.people import Tenant, new_key
from tests.runner.clouds.conftest import NewRequest, StartRunner
from tests.runner.clouds.fake_clouds import AWS_ACCOUNT, FakeCloud, account_trust, aws, web_trust
from tests.runner.clouds.identity_jobs import (
    always,
    everything_reported,
    expire_old_credentials,
    identity_subject,
    kid_of,
    lines,
    outcomes_of,
    result_of,
    subject_of,
    use_identity,
    waiting_files,
)
from tests.runner.clouds.tokens import SUBJECT, WRONGS, Mint
from tests.runner.installation import Installation, messages, new_project, wait_for_end
from tests.waiting import wait_until

AUDIENCE = "sts.amazonaws.com"
#: More than an exchange takes on a machine that has much to do.
SHORT_SECONDS = 5
S3 = {"bucket": BUCKET, "region": REGION, "use_path_style": True, "use_lockfile": True}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCloud]:
    with aws(tmp_path_factory.mktemp("aws")) as fake:
        yield fake


@pytest.fixture
def fake(started: FakeCloud, installation: Installation) -> FakeCloud:
    started.configure(forget=True)
    started.configure(issuers={installation.url: [AUDIENCE]})
    return started


@pytest.fixture
def mint(installation: Installation, ours: Tenant) -> Mint:
    return Mint(installation.url, AUDIENCE)


def role_settings(arn: str, **more: Any) -> dict[str, Any]:
    return {"role_arn": arn, "region": "eu-west-1", "method": "web_identity", "session_seconds": 3600, **more}


def new_identity(ours: Tenant, role_arn: str, *, name: str = "account", **settings: Any) -> CloudIdentity:
    return create_identity(
        organization=ours.organization,
        name=name,
        provider="aws",
        settings={"role_arn": role_arn, "region": REGION, **settings},
        created_by=ours.admin,
    )


def exchanges(fake: FakeCloud) -> list[dict[str, Any]]:
    return fake.requests(action="AssumeRoleWithWebIdentity", status=200)


def fetch_of(identity: CloudIdentity) -> Job | None:
    return Job.objects.filter(identity=identity, type="FETCH_RESOURCES").first()


@pytest.fixture
def endpoint(fake: FakeCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure boto3 in this process."""
    for name, value in fake.machine.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_a_token_of_the_consoles_opens_the_role(
    fake: FakeCloud, mint: Mint, endpoint: None, new_request: NewRequest
) -> None:
    role = fake.new_role("opens", trust=[web_trust(mint.issuer, subject=SUBJECT)])
    attempted = new_request("aws", role_settings(role), mint.good(), environ=fake.machine)
    cloud = AwsRole(attempted.request)
    credentials = cloud.open()
    assert cloud.client("sts", "eu-west-1").get_caller_identity()["Account"] == "123456789012"
    assert credentials.principal.startswith("arn:aws:sts::123456789012:assumed-role/opens/")
    token_file = Path(credentials.environ["AWS_WEB_IDENTITY_TOKEN_FILE"])
    assert token_file.stat().st_mode & 0o777 == 0o600
    assert token_file.read_text() in attempted.hidden


@pytest.mark.parametrize("how", WRONGS)
def test_a_token_that_is_wrong_in_one_respect_does_not(
    how: str, fake: FakeCloud, mint: Mint, endpoint: None, new_request: NewRequest
) -> None:
    role = fake.new_role("refuses", trust=[web_trust(mint.issuer, subject=SUBJECT)])
    token = mint.wrong(how)
    attempted = new_request("aws", role_settings(role), token, environ=fake.machine)
    with pytest.raises(StepFailed) as refused:
        AwsRole(attempted.request).open()
    assert refused.value.code == "credentials_refused"
    assert refused.value.fatal
    assert role in str(refused.value)
    assert token not in str(refused.value)


# --- Terraform on S3 -------------------------------------------------------------------------------


def test_terraform_on_s3_renews_in_the_middle_of_an_apply_and_of_a_key_rotation(
    fake: FakeCloud, installation: Installation, ours: Tenant, start_runner: StartRunner, tmp_path: Path
) -> None:
    """Sessions of seconds, a token file that is replaced every second, and another key from the middle on."""
    role = fake.new_role("deploys", trust=[web_trust(installation.url, subject=subject_of(ours, "*"))])
    project = new_project(ours, waiting_files(tmp_path), name="on-s3")
    use_identity(project, new_identity(ours, role), keep_in=S3)
    fake.configure(session_seconds=SHORT_SECONDS)
    runner = start_runner(fake.machine, SLIPWAY_RUNNER_RENEW_SECONDS="1")
    deploy = project.deploy(project.plan(seconds=90))
    wait_until((tmp_path / "begun").exists, seconds=90, what="the middle of the apply")
    before = {request["jti"] for request in exchanges(fake)}
    keys_before = {request["key"] for request in exchanges(fake)}
    token_file = next(runner.data_dir.glob("work/*/credentials/identity-token"))
    assert token_file.stat().st_mode & 0o777 == 0o600
    token, old_key = token_file.read_text(), current_key().kid
    assert token not in runner.programs()
    begin_rotation()
    assert finish_rotation().kid != old_key
    wait_until(lambda: kid_of(token_file.read_text()) != old_key, seconds=30, what="a token of the new key")
    ends_at = time.time() + SHORT_SECONDS
    wait_until(lambda: time.time() > ends_at, seconds=15, what="the end of the first sessions")
    expire_old_credentials(fake, token_file)
    (tmp_path / "go").touch()
    ended = wait_for_end(deploy, seconds=90)
    assert ended.status == "SUCCESS", messages(ended)
    after = [request for request in exchanges(fake) if request["jti"] not in before]
    written = [request["key"] for request in fake.requests(action="s3 PUT")]
    assert written[-1] in {request["key"] for request in after}, (
        "the state was saved with what the new token gave"
    )
    assert written[-1] not in keys_before
    assert runner.workdirs() == []
    renewals = [
        line["data"] for line in lines(ended) if (line.get("data") or {}).get("kind") == "credentials"
    ]
    assert renewals[0]["renewable"] is True
    assert renewals[-1]["expires_at"] > renewals[0]["expires_at"]
    for secret in (token, *keys_before):
        assert secret not in everything_reported(ended) + runner.log


def test_a_role_that_only_trusts_deploys_refuses_a_plan(
    fake: FakeCloud, installation: Installation, ours: Tenant, start_runner: StartRunner
) -> None:
    role = fake.new_role(
        "only-deploys", trust=[web_trust(installation.url, subject=subject_of(ours, "deploy"))]
    )
    project = new_project(ours, {"main.tf": 'resource "terraform_data" "one" {}'}, name="planned")
    use_identity(project, new_identity(ours, role))
    start_runner(fake.machine)
    ended = wait_for_end(ours.request(spec=project.spec))
    assert (ended.status, ended.error_code) == ("FAILED", "credentials_refused")
    assert "Compare the trust policy" in str(ended.error_message)


def test_the_runners_own_role_stays_with_the_runner_and_keys_in_a_file_are_renewed(
    fake: FakeCloud, installation: Installation, ours: Tenant, start_runner: StartRunner, tmp_path: Path
) -> None:
    """AssumeRole with the external id. A job sees what it got for it, and not with what it was got.

    The identity narrows plans: the plan's session is for S3 alone, the deploy's for all that the role may do.
    """
    only_s3 = json.dumps(
        {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]},
        separators=(",", ":"),
    )
    identity = new_identity(
        ours, f"arn:aws:iam::{AWS_ACCOUNT}:role/by-role", method="assume_role", plan_policy=only_s3
    )
    fake.new_role("by-role", trust=[account_trust(external_id=identity.external_id)])
    project = new_project(ours, waiting_files(tmp_path), name="by-role")
    project.spec.region = "eu-central-1"
    project.spec.save(update_fields=["region"])
    use_identity(project, identity, keep_in=S3)
    fake.configure(session_seconds=SHORT_SECONDS)
    own = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "SECRET_OF_RUNNER": "x"}
    runner = start_runner({**fake.machine, **own})
    plan = project.plan(seconds=90)
    planned = fake.requests(action="AssumeRole", status=200)
    assert {tuple(request["narrowed"]) for request in planned} == {(only_s3,)}
    deploy = project.deploy(plan)
    wait_until((tmp_path / "begun").exists, seconds=90, what="the middle of the apply")
    begun_at = time.time()
    before = {request["key"] for request in fake.requests(action="AssumeRole", status=200)}
    keys_file = next(runner.data_dir.glob("work/*/credentials/aws-keys.json"))
    wait_until(lambda: time.time() > begun_at + SHORT_SECONDS, seconds=15, what="the first sessions' end")
    wait_until(
        lambda: json.loads(keys_file.read_text())["AccessKeyId"] not in before, seconds=15, what="newer keys"
    )
    fake.configure(over_before=begun_at)
    (tmp_path / "go").touch()
    ended = wait_for_end(deploy, seconds=90)
    assert ended.status == "SUCCESS", messages(ended)
    assumed = fake.requests(action="AssumeRole", status=200)
    assert {request["external_id"] for request in assumed} == {identity.external_id}
    assert {tuple(request["narrowed"]) for request in assumed[len(planned) :]} == {()}
    used = [request["key"] for request in fake.requests(action="s3 PUT")]
    assert set(used) <= {request["key"] for request in assumed}
    assert used[-1] not in before, "the state was saved with keys that the runner put into the file meanwhile"
    for key in used:
        assert key not in everything_reported(ended) + runner.log
    environ = (tmp_path / "begun").read_text()
    assert "AWS_CONFIG_FILE=" in environ
    assert "AWS_REGION=eu-central-1\n" in environ, "the Spec's, not the identity's"
    assert "AWS_SECRET_ACCESS_KEY" not in environ
    assert "SECRET_OF_RUNNER" not in environ
    assert runner.workdirs() == []


def test_a_plan_gets_a_session_that_only_reads(
    fake: FakeCloud,
    mint: Mint,
    endpoint: None,
    new_request: NewRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The keys come from a file that boto3 reads through `credential_process`, as Terraform's SDK does."""
    trust = [web_trust(mint.issuer, subject=SUBJECT), account_trust(external_id=None)]
    role = fake.new_role("narrow", trust=trust)
    reading = {"Effect": "Allow", "Action": ["s3:List*", "s3:Get*"], "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [reading]})
    settings = role_settings(role, plan_policy=policy)
    attempted = new_request("aws", settings, mint.good(), environ=fake.machine, only_reads=True)
    credentials = AwsRole(attempted.request).open()
    for name, value in credentials.environ.items():
        monkeypatch.setenv(name, value)
    storage = boto3.session.Session(region_name=REGION).client("s3")
    storage.list_objects_v2(Bucket=BUCKET)
    with pytest.raises(ClientError, match="AccessDenied"):
        storage.put_object(Bucket=BUCKET, Key="written", Body=b"")
    files = list(attempted.request.directory.iterdir())
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_one_attempt_cannot_have_the_token_of_another(
    fake: FakeCloud, installation: Installation, ours: Tenant
) -> None:
    identity = new_identity(ours, f"arn:aws:iam::{AWS_ACCOUNT}:role/any")
    claims = []
    for name in ("first", "second"):
        project = new_project(ours, {"main.tf": ""}, name=name)
        use_identity(project, identity)
        ours.request(spec=project.spec)
        credential = ours.new_runner(name)[1]
        client = ConsoleClient(console_url=installation.url, credential=credential)
        claim = client.claim(ClaimRequest(claim_key=new_key(), types=["PLAN"]), give_up=lambda: True)
        assert claim is not None
        claims.append((client, claim))
    (first, mine), (second, other) = claims
    with closing(first), closing(second):
        token = first.identity_token(
            mine.job_id, IdentityTokenRequest(claim_id=mine.claim_id), give_up=always
        )
        subject = jwt.decode(token.token, options={"verify_signature": False})["sub"]
        assert f"spec:{mine.spec}@" in subject
        _require_only(fake, installation, token.token, subject, instead=f"*:spec:{other.spec}@*")
        for job_id, claim_id in ((other.job_id, mine.claim_id), (other.job_id, other.claim_id)):
            with pytest.raises(StaleClaim):
                first.identity_token(job_id, IdentityTokenRequest(claim_id=claim_id), give_up=always)


def _require_only(
    fake: FakeCloud, installation: Installation, token: str, subject: str, *, instead: str
) -> None:
    """A role for one Spec's jobs opens to the token of such a job, and that of another Spec does not."""
    sts = boto3.client(
        "sts", endpoint_url=fake.address, region_name=REGION, config=Config(signature_version=UNSIGNED)
    )
    for name, trusted, opens in (("for-one", subject, True), ("for-another", instead, False)):
        role = fake.new_role(name, trust=[web_trust(installation.url, subject=trusted)])
        request = {"RoleArn": role, "RoleSessionName": "taken", "WebIdentityToken": token}
        with nullcontext() if opens else pytest.raises(ClientError, match="AccessDenied"):
            assert sts.assume_role_with_web_identity(**request)


def test_a_token_that_was_good_is_refused_when_its_time_is_over(
    fake: FakeCloud, mint: Mint, endpoint: None, new_request: NewRequest
) -> None:
    role = fake.new_role("replayed", trust=[web_trust(mint.issuer, subject=SUBJECT)])
    cloud = AwsRole(new_request("aws", role_settings(role), mint.good(), environ=fake.machine).request)
    assert cloud.open().principal
    fake.configure(clock_offset_seconds=901)
    with pytest.raises(StepFailed, match=r"token for .* expired: Token expired.* Check the clocks"):
        cloud.open()


def test_a_session_whose_time_is_over_is_refused(
    fake: FakeCloud, mint: Mint, endpoint: None, new_request: NewRequest
) -> None:
    """The tests of renewal rely on this."""
    role = fake.new_role("over", trust=[web_trust(mint.issuer, subject=SUBJECT)])
    cloud = AwsRole(new_request("aws", role_settings(role), mint.good(), environ=fake.machine).request)
    keys = cloud.assume()
    session = boto3.session.Session(keys.access_key_id, keys.secret_access_key, keys.session_token, REGION)
    assert session.client("s3").list_objects_v2(Bucket=BUCKET)
    fake.configure(over_before=time.time())
    with pytest.raises(ClientError, match="ExpiredToken"):
        session.client("s3").list_objects_v2(Bucket=BUCKET)
    with pytest.raises(ClientError, match="ExpiredToken"):
        session.client("sts").get_caller_identity()


@pytest.mark.parametrize(("seconds", "opens"), [(-20, True), (-90, False)])
def test_a_clock_that_is_a_little_behind_is_no_harm(
    seconds: int,
    opens: bool,
    fake: FakeCloud,
    mint: Mint,
    endpoint: None,
    new_request: NewRequest,
) -> None:
    role = fake.new_role("clock", trust=[web_trust(mint.issuer, subject=SUBJECT)])
    fake.configure(clock_offset_seconds=seconds)
    cloud = AwsRole(new_request("aws", role_settings(role), mint.good(), environ=fake.machine).request)
    if opens:
        assert cloud.open().principal
    else:
        with pytest.raises(StepFailed, match="clocks"):
            cloud.open()


# --- CONNECTION_TEST -------------------------------------------------------------------------------


def test_a_connection_that_works_and_what_it_leads_to(
    fake: FakeCloud, installation: Installation, ours: Tenant, start_runner: StartRunner
) -> None:
    """Test by role and external id, with the state's bucket; then fetch the account's resources."""
    identity = new_identity(ours, f"arn:aws:iam::{AWS_ACCOUNT}:role/tested", method="assume_role")
    fake.new_role("tested", trust=[account_trust(external_id=identity.external_id)])
    use_identity(new_project(ours, {"main.tf": ""}, name="kept"), identity, keep_in=S3)
    start_runner(fake.machine, AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")
    ended = wait_for_end(request_connection_test(identity=identity, requested_by=ours.admin))
    outcomes = outcomes_of(ended)
    assert set(outcomes.values()) == {"pass"}
    assert ended.status == "SUCCESS", messages(ended)
    assert {
        "credentials",
        "session",
        "principal",
        "external_id",
        "read.subnet",
        "state.s3",
    } <= outcomes.keys()
    assert result_of(ended)["principal"]["account"] == AWS_ACCOUNT
    assert 3500 < result_of(ended)["session_seconds"] <= 3600
    identity.refresh_from_db()
    assert identity.test_passed
    followed = wait_until(lambda: fetch_of(identity), what="the fetch that follows")
    assert followed is not None
    assert wait_for_end(followed).status == "SUCCESS"
    assert find_resources(identity_ids=[identity.pk], kind="vpc")


def set_up(
    fake: FakeCloud, installation: Installation, ours: Tenant, identity: CloudIdentity, **parameters: str
) -> None:
    """Run the template that the identity's page shows in the account, as its owner would."""
    answer = httpx.get(
        f"{installation.url}/api/identities/{identity.pk}/setup",
        headers={"Authorization": f"Bearer {ours.token_of(ours.admin)}"},
        trust_env=False,
    )
    snippets = {snippet["key"]: snippet["text"] for snippet in answer.raise_for_status().json()["data"]}
    template = yaml.safe_load(snippets["cloudformation"])
    # ministack's stacks cannot hold an issuer, so that one resource is made by IAM's own call.
    if issuer := template["Resources"].pop("SlipwayIssuer", None):
        del template["Resources"]["SlipwayRole"]["DependsOn"]
        properties = issuer["Properties"]
        fake.client("iam").create_open_id_connect_provider(
            Url=properties["Url"], ClientIDList=properties["ClientIdList"]
        )
    stacks = fake.client("cloudformation")
    stacks.create_stack(
        StackName=identity.slug,
        TemplateBody=yaml.safe_dump(template),
        Capabilities=["CAPABILITY_NAMED_IAM"],
        Parameters=[{"ParameterKey": key, "ParameterValue": text} for key, text in parameters.items()],
    )

    def status() -> str:
        return str(stacks.describe_stacks(StackName=identity.slug)["Stacks"][0]["StackStatus"])

    wait_until(lambda: status() != "CREATE_IN_PROGRESS", what="the stack")
    assert status() == "CREATE_COMPLETE"


@pytest.mark.parametrize("method", ["web_identity", "assume_role"])
def test_what_the_page_says_to_run_lets_our_runner_in_and_nobody_else(
    method: str, fake: FakeCloud, installation: Installation, ours: Tenant, start_runner: StartRunner
) -> None:
    """The template as it stands on the page, on the emulator; then a test of the connection."""
    name = f"by-{method.replace('_', '-')}"
    role = f"arn:aws:iam::{AWS_ACCOUNT}:role/team/{name}"
    identity = new_identity(ours, role, method=method, name=name)
    other = new_identity(ours, role, method=method, name="other")
    own, parameters = {}, {}
    if method == "assume_role":
        runners_role = fake.new_role("the-runner", trust=[account_trust(external_id=None)])
        keys = fake.client("sts").assume_role(RoleArn=runners_role, RoleSessionName="runner")["Credentials"]
        own = {
            "AWS_ACCESS_KEY_ID": keys["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
            "AWS_SESSION_TOKEN": keys["SessionToken"],
        }  # fmt: skip
        parameters = {"RunnerRoleArn": runners_role}
    set_up(fake, installation, ours, identity, **parameters)
    start_runner(fake.machine, **own)
    ended = wait_for_end(request_connection_test(identity=identity, requested_by=ours.admin))
    assert set(outcomes_of(ended).values()) == {"pass"}, outcomes_of(ended)
    assert f"assumed-role/{name}/" in result_of(ended)["principal"]["arn"]
    refused = wait_for_end(request_connection_test(identity=other, requested_by=ours.admin))
    assert refused.status == "FAILED"
    assert "AWS refused" in outcomes_of(refused)["credentials"]


def test_each_check_that_fails_says_what_to_do(
    fake: FakeCloud, installation: Installation, ours: Tenant, start_runner: StartRunner
) -> None:
    """A role that lets everybody in, for a short time, to too little; and a bucket that is missing."""
    identity = new_identity(ours, f"arn:aws:iam::{AWS_ACCOUNT}:role/bad", method="assume_role")
    fake.new_role(
        "bad", trust=[account_trust(external_id=None)], allow=["ec2:DescribeVpcs", "ec2:DescribeRegions"]
    )
    missing = {**S3, "bucket": "not-there"}
    use_identity(new_project(ours, {"main.tf": ""}, name="kept"), identity, keep_in=missing)
    fake.configure(max_session_seconds=900)
    start_runner(fake.machine, AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")
    ended = wait_for_end(request_connection_test(identity=identity, requested_by=ours.admin))
    assert (ended.status, ended.error_code) == ("FAILED", "connection_test_failed")
    identity.refresh_from_db()
    checks = {check["code"]: check for check in identity.last_test["checks"]}
    failed = {code for code, check in checks.items() if check["outcome"] == "fail"}
    assert {"session", "external_id", "read.subnet", "read.certificate", "state.s3"} <= failed
    assert checks["read.vpc"]["outcome"] == "pass"
    assert identity.external_id in checks["external_id"]["remedy"]
    assert "maximum session duration" in checks["session"]["remedy"]
    assert "not-there" in checks["state.s3"]["remedy"]
    assert all(checks[code]["remedy"] for code in failed)


def test_a_wrong_arn(fake: FakeCloud, ours: Tenant, start_runner: StartRunner) -> None:
    start_runner(fake.machine)
    identity = new_identity(ours, f"arn:aws:iam::{AWS_ACCOUNT}:role/not-there")
    ended = wait_for_end(request_connection_test(identity=identity, requested_by=ours.admin))
    assert ended.status == "FAILED"
    (check,) = result_of(ended)["checks"]
    assert (check["code"], check["outcome"]) == ("credentials", "fail")
    assert "AWS refused" in check["detail"]
    assert "Compare the trust policy" in check["remedy"]


def test_what_the_runner_itself_has(fake: FakeCloud, ours: Tenant, start_runner: StartRunner) -> None:
    identity = create_identity(
        organization=ours.organization, name="own", provider="ambient", settings={"provider_hint": "aws"},
        created_by=ours.admin,
    )  # fmt: skip
    use_identity(new_project(ours, {"main.tf": ""}, name="kept"), identity, keep_in=S3)
    start_runner(fake.machine, AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_REGION=REGION)
    ended = wait_for_end(request_connection_test(identity=identity, requested_by=ours.admin))
    outcomes = outcomes_of(ended)
    assert set(outcomes.values()) == {"pass"}
    assert {"principal", "read.subnet", "state.s3"} <= outcomes.keys()
    assert result_of(ended)["principal"]["arn"] == f"arn:aws:iam::{AWS_ACCOUNT}:root"


# --- FETCH_RESOURCES -------------------------------------------------------------------------------


def test_a_large_account_with_a_region_that_is_off_and_one_that_throttles(
    fake: FakeCloud, installation: Installation, ours: Tenant, start_runner: StartRunner
) -> None:
    role = fake.new_role("fetches", trust=[web_trust(installation.url, subject=identity_subject(ours))])
    regions = ["eu-west-1", "eu-central-1", "ap-south-2"]
    identity = new_identity(ours, role, regions=regions)
    fake.configure(subnets={"eu-central-1": 5000}, off=["ap-south-2"], throttle={"DescribeSubnets": 2})
    start_runner(fake.machine)
    ended = wait_for_end(request_fetch(identity=identity, requested_by=ours.admin), seconds=60)
    assert ended.status == "SUCCESS", messages(ended)
    assert len(fake.requests(action="DescribeSubnets", throttled=True)) == 2
    pages = fake.requests(action="DescribeSubnets")
    assert sorted(page["start"] for page in pages if "start" in page) == [0, 1000, 2000, 3000, 4000]
    lists = {
        (resources.region, resources.kind): resources
        for resources in ResourceList.objects.filter(identity=identity)
    }
    assert lists["eu-central-1", "subnet"].resource_count == 5000
    assert lists["eu-central-1", "subnet"].error == ""
    assert lists["eu-west-1", "vpc"].resource_count >= 1
    assert "is off for this account" in lists["ap-south-2", "subnet"].error
    off = [message for message in messages(ended) if "ap-south-2" in message]
    assert len(off) == 1, off
    assert {failed["region"] for failed in result_of(ended)["failed"]} == {"ap-south-2"}
    (subnet,) = find_resources(identity_ids=[identity.pk], kind="subnet", search="subnet-00001387")
    assert subnet.resource["zone"] == "eu-central-1a"


def test_what_may_not_be_read_is_said_and_the_rest_is_kept(
    fake: FakeCloud, installation: Installation, ours: Tenant, start_runner: StartRunner
) -> None:
    role = fake.new_role(
        "half-blind",
        trust=[web_trust(installation.url, subject=identity_subject(ours))],
        allow=["ec2:DescribeRegions", "ec2:DescribeVpcs", "ec2:DescribeKeyPairs"],
    )
    identity = new_identity(ours, role)
    start_runner(fake.machine)
    ended = wait_for_end(request_fetch(identity=identity, requested_by=ours.admin))
    assert ended.status == "SUCCESS", messages(ended)
    lists = {resources.kind: resources for resources in ResourceList.objects.filter(identity=identity)}
    assert lists["vpc"].resource_count >= 1
    for kind in ("subnet", "hosted_zone", "certificate"):
        assert role in lists[kind].error, kind
