"""Cloud credentials in the runner alone: its own, missing libraries, renewals that fail."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from runner.clouds.aws.clients import AwsClients
from runner.clouds.contract import TerraformCredentials
from runner.clouds.registry import CLOUDS, region_environment, with_credentials
from runner.clouds.renewal import Renewer
from runner.clouds.secret_files import secrets_in_files
from runner.protocol import IdentityAccess, JobType
from tests.runner.conftest import StartRunner
from tests.runner.fake_console import FakeConsole
from tests.waiting import wait_until


def identity(provider: str, **settings: Any) -> IdentityAccess:
    return IdentityAccess(identity_id="1", name="account", provider=provider, settings=settings)


def looking(folder: Path) -> dict[str, str]:
    """A configuration whose apply writes down what it can see, and prints the runner's own key file."""
    command = f"env > {folder}/seen; cat /dev/null $AWS_SHARED_CREDENTIALS_FILE"
    return {
        "main.tf": f"""
            resource "terraform_data" "look" {{
              provisioner "local-exec" {{ command = "{command}" }}
            }}
        """
    }


def test_ambient_credentials_reach_a_job_by_a_list_of_names(
    console: FakeConsole, start_runner: StartRunner, tmp_path: Path
) -> None:
    """The list is that of the cloud which the identity names; nothing else of the runner's is passed."""
    files = looking(tmp_path)
    own = identity("ambient", provider_hint="aws")
    key_file = tmp_path / "keys"
    key_file.write_text(
        "[default]\naws_access_key_id = AKIAFILE\naws_secret_access_key = a-secret-in-a-file\n"
    )
    start_runner(
        AWS_ACCESS_KEY_ID="AKIAOWN", AWS_SECRET_ACCESS_KEY="the-runners-secret", AWS_REGION="eu-west-1",
        AWS_SHARED_CREDENTIALS_FILE=str(key_file),
        GOOGLE_CREDENTIALS="another-cloud", DATABASE_PASSWORD="unrelated",
    )  # fmt: skip
    plan = console.enqueue(JobType.PLAN, files, identity=own)
    assert plan.wait_for_end().status == "SUCCESS", plan.messages
    deploy = console.enqueue(JobType.DEPLOY, files, plan=plan.uploaded, identity=own)
    assert deploy.wait_for_end().status == "SUCCESS", deploy.messages
    environ = (tmp_path / "seen").read_text()
    assert "AWS_SECRET_ACCESS_KEY=the-runners-secret" in environ
    assert "AWS_REGION=eu-west-1" in environ
    assert "another-cloud" not in environ
    assert "unrelated" not in environ
    assert "the-runners-secret" not in plan.text + deploy.text
    assert "aws_secret_access_key = ***" in deploy.text, "the file was printed"
    assert "a-secret-in-a-file" not in deploy.text


def test_what_is_secret_in_the_runners_own_files_is_known(tmp_path: Path) -> None:
    key, token, broken = tmp_path / "key.json", tmp_path / "token", tmp_path / "broken"
    key.write_text(
        '{"type": "service_account", "private_key": "-----BEGIN\\nabcdefgh\\n", "client_email": "me"}'
    )
    token.write_text("eyJ.a-token.sig\n")
    broken.write_bytes(b"\xff{")
    environ = {
        "GOOGLE_APPLICATION_CREDENTIALS": str(key), "AZURE_FEDERATED_TOKEN_FILE": str(token),
        "GOOGLE_CREDENTIALS": '{"refresh_token": "inline"}', "AWS_CONFIG_FILE": str(broken),
        "AWS_WEB_IDENTITY_TOKEN_FILE": "/nonexistent",
    }  # fmt: skip
    files = {name: find for cloud in CLOUDS.values() for name, find in cloud.ambient.secret_files.items()}
    assert {secret for secret in secrets_in_files(environ, files) if secret} == {
        "-----BEGIN\nabcdefgh\n",
        "eyJ.a-token.sig",
        "inline",
    }


def test_a_specs_region_is_said_as_its_cloud_knows_it() -> None:
    assert region_environment("eu-west-1", cloud="aws") == {
        "AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1",
    }  # fmt: skip
    assert region_environment("europe-west1", cloud="gcp").keys() == {
        "GOOGLE_REGION",
        "CLOUDSDK_COMPUTE_REGION",
    }
    assert {"AWS_REGION", "GOOGLE_REGION"} <= region_environment("here", cloud="").keys()
    assert region_environment("", cloud="aws") == {}


def test_a_job_without_an_identity_sees_nothing_of_the_runners_cloud(
    console: FakeConsole, start_runner: StartRunner, tmp_path: Path
) -> None:
    start_runner(AWS_SECRET_ACCESS_KEY="the-runners-secret")
    files = looking(tmp_path)
    plan = console.enqueue(JobType.PLAN, files)
    assert plan.wait_for_end().status == "SUCCESS", plan.messages
    deploy = console.enqueue(JobType.DEPLOY, files, plan=plan.uploaded)
    assert deploy.wait_for_end().status == "SUCCESS", deploy.messages
    assert "AWS_" not in (tmp_path / "seen").read_text()


def test_a_library_that_is_missing_is_named_with_the_remedy(
    console: FakeConsole, start_runner: StartRunner, tmp_path: Path
) -> None:
    """An install of the runner alone has none of them."""
    (tmp_path / "boto3.py").write_text("raise ImportError('not installed')")
    start_runner(PYTHONPATH=str(tmp_path))
    role = identity("aws", role_arn="arn:aws:iam::123456789012:role/any")
    report = console.enqueue(JobType.PLAN, {"main.tf": ""}, identity=role).wait_for_end()
    assert (report.status, report.error_code) == ("FAILED", "extra_missing")
    assert "pip install 'slipway[aws]'" in str(report.error_message)


def test_a_cloud_that_says_nothing_holds_up_neither_a_cancel_nor_sigterm(
    console: FakeConsole, start_runner: StartRunner
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sts = f"http://127.0.0.1:{silent.getsockname()[1]}"
        runner = start_runner(
            AWS_ACCESS_KEY_ID="AKIAOWN", AWS_SECRET_ACCESS_KEY="own", AWS_ENDPOINT_URL_STS=sts
        )
        role = identity("aws", role_arn="arn:aws:iam::123456789012:role/any", method="runner")
        cancelled = console.enqueue(JobType.PLAN, {"main.tf": ""}, identity=role)
        cancelled.wait_for("Obtaining credentials")
        cancelled.cancel = "person"
        assert cancelled.wait_for_end(seconds=25).status == "CANCELLED"
        stopped = console.enqueue(JobType.PLAN, {"main.tf": ""}, identity=role)
        stopped.wait_for("Obtaining credentials")
        runner.signal(signal.SIGTERM)
        assert runner.wait(seconds=25) == 0
        assert stopped.wait_for_end().error_code == "runner_stopped"


@pytest.mark.parametrize("type", [JobType.FETCH_RESOURCES, JobType.CONNECTION_TEST])
@pytest.mark.parametrize("reason", ["cancelled", "runner_stopped"])
def test_a_cloud_that_falls_silent_holds_up_no_job_that_reads_it(
    type: JobType, reason: str, console: FakeConsole, start_runner: StartRunner
) -> None:
    """It holds up no end of the runner either, although its requests wait for minutes."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cloud = f"http://127.0.0.1:{silent.getsockname()[1]}"
        own = {"AWS_ACCESS_KEY_ID": "AKIAOWN", "AWS_SECRET_ACCESS_KEY": "own", "AWS_ENDPOINT_URL": cloud}
        runner = start_runner(**own)
        job = console.enqueue(type, identity=identity("ambient", provider_hint="aws", regions=["eu-west-1"]))
        with silent.accept()[0]:
            if reason == "cancelled":
                job.cancel = "person"
                job.wait_for_end(seconds=25)
            runner.signal(signal.SIGTERM)
            assert runner.wait(seconds=25) == 0
    assert job.wait_for_end().error_code == reason


@pytest.mark.parametrize(
    ("access", "code"),
    [
        (identity("aws"), "identity_incomplete"),
        (identity("oracle"), "provider_unknown"),
        (None, "identity_missing"),
    ],
)
def test_an_identity_that_cannot_be_used(
    access: IdentityAccess | None, code: str, console: FakeConsole, start_runner: StartRunner
) -> None:
    start_runner()
    report = console.enqueue(JobType.FETCH_RESOURCES, identity=access).wait_for_end()
    assert (report.status, report.error_code) == ("FAILED", code)
    assert report.fatal


def test_an_account_that_is_asked_too_often_is_told_apart_from_one_that_refuses() -> None:
    """This is after the SDK has given up; its retries are in tests/runner/clouds."""
    clients = AwsClients("eu-west-1")
    answer: Any = {"Error": {"Code": "RequestLimitExceeded", "Message": "Request limit exceeded."}}
    explanation = clients.explain_denial(ClientError(answer, "DescribeSubnets"))
    assert explanation.startswith(
        "AWS is throttling requests: Request limit exceeded (RequestLimitExceeded). Try again"
    )


def test_what_would_win_over_the_identity_gives_way_to_it() -> None:
    credentials = TerraformCredentials(
        environ={"AWS_ROLE_ARN": "role"},
        defaults={"AWS_REGION": "eu-west-1"},
        outranked=("AWS_ACCESS_KEY_ID", "AWS_SECRET_*"),
        passed=("AWS_ENDPOINT_URL_*",),
    )
    spec = {
        "AWS_ACCESS_KEY_ID": "old",
        "AWS_SECRET_ACCESS_KEY": "old",
        "AWS_REGION": "us-east-1",
        "PATH": "/bin",
    }
    machine = {"AWS_ENDPOINT_URL_S3": "http://here", "AWS_PROFILE": "the runner's"}
    environ, outranked = with_credentials(spec, credentials, runner_environ=machine)
    assert environ == {
        "AWS_ROLE_ARN": "role", "AWS_REGION": "us-east-1", "PATH": "/bin", "AWS_ENDPOINT_URL_S3": "http://here",
    }  # fmt: skip
    assert outranked == ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]


def test_a_renewal_that_fails_is_said_once_and_tried_again() -> None:
    warnings: list[str] = []
    renewals: list[str] = []
    tries: list[int] = []

    def renew() -> float:
        tries.append(1)
        if len(tries) < 4:
            raise ConnectionError("away")
        return 0.4

    renewer = Renewer(longest_seconds=60, warn=warnings.append, on_renewal=renewals.append)
    renewer.add("The token", renew, seconds=0.4)
    wait_until(lambda: len(renewals) > 1, what="two renewals")
    renewer.end()
    ended_with = len(tries)
    assert warnings == [
        "The token could not be renewed, trying again: away",
        "The token is renewed after all",
    ]
    assert not renewer.is_alive
    assert len(tries) == ended_with
