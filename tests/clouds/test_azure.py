"""Azure: the console's token as a federated credential, through azure-identity and Terraform's azurerm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from console.identities.issuer import Named, subject
from console.identities.keys import current_key, finish_rotation
from console.identities.models import CloudIdentity, ResourceList
from console.identities.resources import find_resources
from console.identities.services import create_identity
from console.jobs.identity_jobs import request_connection_test, request_fetch
from runner.credentials.azure import Azure
from runner.outcome import StepFailed
from tests.clouds.azure_gate import AUDIENCE
from tests.clouds.conftest import NewOccasion, StartRunner
from tests.clouds.starting import APPLICATION, SUBSCRIPTION, TENANT, Gate, azure
from tests.clouds.tokens import SUBJECT, WRONGS, Mint
from tests.clouds.working import everything_told, kid_of, outcomes_of, result_of, use_identity, waiting_files
from tests.people import Tenant
from tests.runner.installation import Installation, Project, messages, new_project, wait_for_end
from tests.state.emulators import ACCOUNT, BUCKET
from tests.waiting import wait_until

SETTINGS = {"tenant_id": TENANT, "client_id": APPLICATION, "subscription_id": SUBSCRIPTION}
CONTAINER = {"storage_account_name": ACCOUNT, "container_name": BUCKET}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    with azure(tmp_path_factory.mktemp("azure")) as gate:
        yield gate


@pytest.fixture
def gate(started: Gate) -> Gate:
    started.tell(forget=True)
    return started


def federate(gate: Gate, installation: Installation, *subjects: str) -> None:
    """The application's federated credentials: each names one subject, whole."""
    trusted = {"tenant": TENANT, "issuer": installation.url, "subjects": subjects}
    gate.tell(applications={APPLICATION: trusted})


@pytest.fixture
def mint(installation: Installation, ours: Tenant) -> Mint:
    return Mint(installation.url, AUDIENCE)


@pytest.fixture
def machine(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """For azure-identity in this process."""
    for name, value in {**gate.machine, "NO_PROXY": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    return gate.machine


@pytest.fixture
def identity(ours: Tenant) -> CloudIdentity:
    return create_identity(
        organization=ours.organization, name="sub", provider="azure", settings=SETTINGS, created_by=ours.admin
    )


def subject_of(ours: Tenant, identity: CloudIdentity, action: str, project: Project | None = None) -> str:
    spec = Named(project.spec.slug, project.spec.pk) if project else None
    return subject(
        organization=Named(ours.organization.slug, ours.organization.pk),
        action=action,
        spec=spec,
        environment=project.spec.environment if project else "",
        identity=Named(identity.slug, identity.pk),
    )


def test_a_token_of_the_consoles_opens_the_application(
    gate: Gate, installation: Installation, mint: Mint, machine: dict[str, str], new_occasion: NewOccasion
) -> None:
    federate(gate, installation, SUBJECT)
    attempted = new_occasion("azure", SETTINGS, mint.good(), environ=machine)
    cloud = Azure(attempted.occasion)
    handed = cloud.open()
    try:
        assert cloud.bearer(cloud.management) in attempted.hidden
        url, password = handed.environ["ARM_OIDC_REQUEST_URL"], handed.environ["ARM_OIDC_REQUEST_TOKEN"]
        given = httpx.get(url, headers={"Authorization": f"Bearer {password}"}, trust_env=False).json()
        assert given["value"] == Path(handed.environ["AZURE_FEDERATED_TOKEN_FILE"]).read_text()
        assert httpx.get(url, trust_env=False).status_code == 401
        assert password in attempted.hidden
    finally:
        cloud.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, trust_env=False)


@pytest.mark.parametrize("how", WRONGS)
def test_a_token_that_is_wrong_in_one_respect_does_not(
    how: str,
    gate: Gate,
    installation: Installation,
    mint: Mint,
    machine: dict[str, str],
    new_occasion: NewOccasion,
) -> None:
    federate(gate, installation, SUBJECT)
    token = mint.wrong(how)
    cloud = Azure(new_occasion("azure", SETTINGS, token, environ=machine).occasion)
    with pytest.raises(StepFailed, match="Azure did not accept the console's token") as refused:
        cloud.open()
    assert refused.value.fatal
    assert "AADSTS" in str(refused.value)
    assert token not in str(refused.value)
    expected = {"expiry": "expired", "key": "signature"}.get(how, how)
    assert gate.seen(action="token", rejected=expected)


def test_terraform_on_azurerm_renews_in_the_middle_of_an_apply_and_of_a_key_rotation(
    gate: Gate,
    installation: Installation,
    ours: Tenant,
    identity: CloudIdentity,
    start_runner: StartRunner,
    tmp_path: Path,
) -> None:
    project = new_project(ours, waiting_files(tmp_path), name="on-azurerm")
    use_identity(project, identity, keep_in=CONTAINER, kind="azurerm")
    federate(gate, installation, *(subject_of(ours, identity, one, project) for one in ("plan", "deploy")))
    runner = start_runner(gate.machine, SLIPWAY_RUNNER_RENEW_SECONDS="1")
    plan = project.plan(seconds=90)
    # From now on every access token ends within the time at which azurerm renews it.
    gate.tell(session_seconds=60)
    deploy = project.deploy(plan)
    wait_until((tmp_path / "begun").exists, seconds=40, what="the middle of the apply")
    before = {one["jti"] for one in gate.seen(action="token")}
    token_file = next(runner.data_dir.glob("work/*/credentials/identity-token"))
    token, old_key = token_file.read_text(), current_key().kid
    finish_rotation()
    wait_until(lambda: kid_of(token_file.read_text()) != old_key, seconds=10, what="a token of the new key")
    (tmp_path / "go").touch()
    ended = wait_for_end(deploy, seconds=90)
    assert ended.status == "SUCCESS", messages(ended)
    assert {one["jti"] for one in gate.seen(action="token")} - before
    assert gate.seen(action="blob PUT")
    assert runner.workdirs() == []
    assert token not in everything_told(ended) + runner.log


def test_a_connection_that_works_and_what_it_leads_to(
    gate: Gate, installation: Installation, ours: Tenant, identity: CloudIdentity, start_runner: StartRunner
) -> None:
    use_identity(new_project(ours, {"main.tf": ""}, name="kept"), identity, keep_in=CONTAINER, kind="azurerm")
    federate(gate, installation, subject_of(ours, identity, "test"))
    start_runner(gate.machine)
    ended = wait_for_end(request_connection_test(identity=identity, requested_by=ours.admin))
    outcomes = outcomes_of(ended)
    assert set(outcomes.values()) == {"pass"}
    assert ended.status == "SUCCESS", messages(ended)
    assert {"credentials", "session", "principal", "read.subnet", "state.azurerm"} <= outcomes.keys()
    assert result_of(ended)["principal"]["subscription"] == "Suite"


def test_what_is_found_and_what_may_not_be_read(
    gate: Gate, installation: Installation, ours: Tenant, identity: CloudIdentity, start_runner: StartRunner
) -> None:
    federate(gate, installation, subject_of(ours, identity, "test"))
    gate.tell(denied=["/dnszones"], throttle={"locations": 1})
    start_runner(gate.machine)
    ended = wait_for_end(request_fetch(identity=identity, requested_by=ours.admin))
    assert ended.status == "SUCCESS", messages(ended)
    subnets = find_resources(identity_ids=[identity.pk], kind="subnet")
    assert [one.resource["network"] for one in subnets] == ["first", "second"]
    assert {one.region for one in subnets} == {"westeurope"}
    assert find_resources(identity_ids=[identity.pk], kind="region")[0].id == "westeurope"
    zones = ResourceList.objects.get(identity=identity, kind="hosted_zone")
    assert "such as Reader" in zones.error
