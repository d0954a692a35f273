"""Starts the clouds: each an emulator with the suite's own process in front of it, which checks tokens."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx

from tests.console.state.emulators import (
    ACCOUNT,
    ACCOUNT_KEY,
    REGION,
    ROOT,
    account_sas,
    amazon,
    certificates,
    connect_proxy,
    google,
    make_container,
    program,
    running,
)
from tests.console.state.served import free_port
from tests.runner.clouds.fake_server import SUITE
from tests.waiting import wait_until

AWS_ACCOUNT = "123456789012"
GOOGLE_PROJECT = "suite-project"
GOOGLE_PROVIDER = "projects/123456789/locations/global/workloadIdentityPools/slipway/providers/console"
SERVICE_ACCOUNT = "slipway@suite-project.iam.gserviceaccount.com"
TENANT = "11111111-1111-4111-8111-111111111111"
APPLICATION = "22222222-2222-4222-8222-222222222222"
SUBSCRIPTION = "33333333-3333-4333-8333-333333333333"


@dataclass
class FakeCloud:
    """A process in the place of a cloud."""

    address: str
    #: The environment in which the runner finds it.
    machine: dict[str, str]
    trusted: ssl.SSLContext | bool = True
    #: The address of the emulator behind it.
    behind: str = ""
    roles: list[str] = field(default_factory=list)

    def configure(self, **settings: Any) -> None:
        httpx.put(
            f"{self.address}{SUITE}", json=settings, verify=self.trusted, trust_env=False
        ).raise_for_status()

    def requests(self, **like: Any) -> list[dict[str, Any]]:
        """Return the requests with these facts, in order."""
        requests = httpx.get(f"{self.address}{SUITE}", verify=self.trusted, trust_env=False).json()
        return [request for request in requests if like.items() <= request.items()]

    def client(self, service: str) -> Any:
        """A boto3 client of the account's owner."""
        return boto3.client(
            service, endpoint_url=self.behind, region_name=REGION, aws_access_key_id="test",
            aws_secret_access_key="test",
        )  # fmt: skip

    def new_role(self, name: str, *, trust: list[dict[str, Any]], allow: list[str] | None = None) -> str:
        """A role that may do some things, or everything; returns its ARN."""
        iam = self.client("iam")
        if name in self.roles:
            iam.delete_role_policy(RoleName=name, PolicyName="all")
            iam.delete_role(RoleName=name)
        policy = {"Effect": "Allow", "Action": allow or ["*"], "Resource": "*"}
        answer = iam.create_role(RoleName=name, AssumeRolePolicyDocument=_policy(trust))
        iam.put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=_policy([policy]))
        self.roles.append(name)
        return str(answer["Role"]["Arn"])


def _policy(statements: list[dict[str, Any]]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def web_trust(issuer: str, *, subject: str, audience: str = "sts.amazonaws.com") -> dict[str, Any]:
    """Return the trust policy that the identity's page recommends."""
    host = urlsplit(issuer).netloc
    return {
        "Effect": "Allow",
        "Principal": {"Federated": f"arn:aws:iam::{AWS_ACCOUNT}:oidc-provider/{host}"},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": {
            "StringEquals": {f"{host}:aud": audience},
            "StringLike": {f"{host}:sub": subject},
        },
    }


def account_trust(*, external_id: str | None) -> dict[str, Any]:
    """Trust the whole account, with the external id if there is one."""
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{AWS_ACCOUNT}:root"},
        "Action": "sts:AssumeRole",
    }
    if external_id:
        statement["Condition"] = {"StringEquals": {"sts:ExternalId": external_id}}
    return statement


@contextmanager
def aws(folder: Path) -> Iterator[FakeCloud]:
    with amazon(folder) as environ:
        behind = environ["AWS_ENDPOINT_URL"]
        port = urlsplit(behind).port
        with _process("fake_aws", folder, str(port)) as address:
            # Terraform's SDK looks at the second when it assumes a role by itself.
            machine = {"AWS_ENDPOINT_URL": address, "AWS_ENDPOINT_URL_STS": address}
            yield FakeCloud(address, machine, behind=behind)


@contextmanager
def gcp(folder: Path) -> Iterator[FakeCloud]:
    with google(folder) as cloud:
        port = urlsplit(cloud.environment["STORAGE_EMULATOR_HOST"]).port
        with _process("fake_google", folder, str(port)) as address:
            overrides = {
                "STS": "/sts", "IAMCREDENTIALS": "/iamcredentials", "COMPUTE": "/compute/v1",
                "DNS": "/dns/v1", "CONTAINER": "/container", "STORAGE": "/storage/v1",
            }  # fmt: skip
            machine = {
                f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name}": f"{address}{path}"
                for name, path in overrides.items()
            }
            machine["GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT"] = f"{address}/storage/v1/"
            yield FakeCloud(address, machine)


@contextmanager
def azure(folder: Path) -> Iterator[FakeCloud]:
    port = free_port()
    authority, certificate, key = certificates(folder)
    options = "--oauth basic --skipApiVersionCheck --disableTelemetry --inMemoryPersistence --silent"
    command = [
        program("azurite-blob"), "--blobHost", "127.0.0.1", "--blobPort", str(port),
        "--cert", str(certificate), "--key", str(key), *options.split(),
    ]  # fmt: skip
    with (
        running(command, folder / "azure.log", port, AZURITE_ACCOUNTS=f"{ACCOUNT}:{ACCOUNT_KEY}"),
        _process("fake_azure", folder, str(port), str(certificate), str(key), tls=True) as address,
        connect_proxy(int(address.rpartition(":")[2])) as proxy,
    ):
        make_container(port, authority, account_sas())
        machine = {
            "HTTPS_PROXY": proxy,
            "SSL_CERT_FILE": str(authority),
            "REQUESTS_CA_BUNDLE": str(authority),
        }
        yield FakeCloud(address, machine, trusted=ssl.create_default_context(cafile=str(authority)))


@contextmanager
def _process(module: str, folder: Path, *arguments: str, tls: bool = False) -> Iterator[str]:
    """A process of the suite's own, at the address that it yields."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    address = f"{'https' if tls else 'http'}://127.0.0.1:{listening.getsockname()[1]}"
    log = folder / f"{module}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", f"tests.runner.clouds.{module}", *arguments],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder)},
            stdin=listening.fileno(),
            stdout=output,
            stderr=output,
        )
    listening.close()
    try:
        wait_until(lambda: _answers(process, address, log), seconds=30, what=module)
        yield address
    finally:
        process.terminate()
        process.wait(20)
    assert "Traceback" not in log.read_text(), log.read_text()


def _answers(process: subprocess.Popen[bytes], address: str, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        return httpx.get(f"{address}{SUITE}", verify=False, trust_env=False).is_success
    except httpx.TransportError:
        return False
