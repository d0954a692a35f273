"""Azure: the console's token as a federated credential, through azure-identity and Terraform's azurerm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from console.identities.issuer import Named, subject
from console.identities.jobs import request_connection_test, request_fetch
from console.identities.keys import current_key, finish_rotation
from console.identities.models import CloudIdentity, ResourceList
from console.identities.resources import find_resources
from console.identities.services import create_identity
from console.jobs.models import Job
from runner.clouds.azure.ambient import AmbientAzure
from runner.clouds.azure.credentials import AzureApplication
from runner.clouds.azure.inventory import AzureInventory
from runner.clouds.contract import CredentialsMissing
from runner.outcome import StepFailed
from tests.console.state.emulators import ACCOUNT, BUCKET
from tests.people import Tenant
from tests.runner.clouds.conftest import NewRequest, StartRunner
from tests.runner.clouds.fake_azure import AUDIENCE
from tests.runner.clouds.fake_clouds import APPLICATION, SUBSCRIPTION, TENANT, FakeCloud, azure
from tests.runner.clouds.identity_jobs import (
    everything_reported,
    expire_old_credentials,
    kid_of,
    outcomes_of,
    result_of,
    use_identity,
    waiting_files,
)
from tests.runner.clouds.tokens import SUBJECT, WRONGS, Mint
from tests.runner.installation import Installation, Project, messages, new_project, wait_for_end
from tests.waiting import wait_until

SETTINGS = {"tenant_id": TENANT, "client_id": APPLICATION, "subscription_id": SUBSCRIPTION}
CONTAINER = {"storage_account_name": ACCOUNT, "container_name": BUCKET}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCloud]:
    with azure(tmp_path_factory.mktemp("azure")) as fake:
        yield fake


@pytest.fixture
def fake(started: FakeCloud) -> FakeCloud:
    started.configure(forget=True)
    return started


def federate(fake: FakeCloud, installation: Installation, *subjects: str, secret: str = "") -> None:
    """The application's federated credentials: each names one subject, whole; it may have a secret."""
    trusted = {"tenant": TENANT, "issuer": installation.url, "subjects": subjects, "secret": secret}
    fake.configure(applications={APPLICATION: trusted})


@pytest.fixture
def mint(installation: Installation, ours: Tenant) -> Mint:
    return Mint(installation.url, AUDIENCE)


@pytest.fixture
def machine(fake: FakeCloud, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Configure azure-identity in this process."""
    for name, value in {**fake.machine, "NO_PROXY": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    return fake.machine


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
    fake: FakeCloud,
    installation: Installation,
    mint: Mint,
    machine: dict[str, str],
    new_request: NewRequest,
) -> None:
    federate(fake, installation, SUBJECT)
    attempted = new_request("azure", SETTINGS, mint.good(), environ=machine)
    cloud = AzureApplication(attempted.request)
    credentials = cloud.open()
    try:
        assert cloud.bearer(cloud.management) in attempted.hidden
        url, password = (
            credentials.environ["ARM_OIDC_REQUEST_URL"],
            credentials.environ["ARM_OIDC_REQUEST_TOKEN"],
        )
        answer = httpx.get(url, headers={"Authorization": f"Bearer {password}"}, trust_env=False).json()
        assert answer["value"] == Path(credentials.environ["AZURE_FEDERATED_TOKEN_FILE"]).read_text()
        assert httpx.get(url, trust_env=False).status_code == 401
        assert password in attempted.hidden
    finally:
        cloud.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, trust_env=False)


@pytest.mark.parametrize("how", WRONGS)
def test_a_token_that_is_wrong_in_one_respect_does_not(
    how: str,
    fake: FakeCloud,
    installation: Installation,
    mint: Mint,
    machine: dict[str, str],
    new_request: NewRequest,
) -> None:
    federate(fake, installation, SUBJECT)
    token = mint.wrong(how)
    cloud = AzureApplication(new_request("azure", SETTINGS, token, environ=machine).request)
    with pytest.raises(StepFailed, match="Azure did not accept the console's token") as refused:
        cloud.open()
    assert refused.value.fatal
    assert "AADSTS" in str(refused.value)
    assert token not in str(refused.value)
    expected = {"expiry": "expired", "key": "signature"}.get(how, how)
    assert fake.requests(action="token", rejected=expected)


def test_terraform_on_azurerm_renews_in_the_middle_of_an_apply_and_of_a_key_rotation(
    fake: FakeCloud,
    installation: Installation,
    ours: Tenant,
    identity: CloudIdentity,
    start_runner: StartRunner,
    tmp_path: Path,
) -> None:
    project = new_project(ours, waiting_files(tmp_path), name="on-azurerm")
    use_identity(project, identity, keep_in=CONTAINER, kind="azurerm")
    federate(
        fake, installation, *(subject_of(ours, identity, action, project) for action in ("plan", "deploy"))
    )
    runner = start_runner(fake.machine, SLIPWAY_RUNNER_RENEW_SECONDS="1")
    plan = project.plan(seconds=90)
    # From now on every access token ends within the time at which azurerm renews it.
    fake.configure(session_seconds=60)
    deploy = project.deploy(plan)
    wait_until((tmp_path / "begun").exists, seconds=90, what="the middle of the apply")
    before = {request["jti"] for request in fake.requests(action="token")}
    token_file = next(runner.data_dir.glob("work/*/credentials/identity-token"))
    token, old_key = token_file.read_text(), current_key().kid
    finish_rotation()
    wait_until(lambda: kid_of(token_file.read_text()) != old_key, seconds=30, what="a token of the new key")
    expire_old_credentials(fake, token_file)
    (tmp_path / "go").touch()
    ended = wait_for_end(deploy, seconds=90)
    assert ended.status == "SUCCESS", messages(ended)
    assert {request["jti"] for request in fake.requests(action="token")} - before
    assert fake.requests(action="blob PUT")
    assert runner.workdirs() == []
    assert token not in everything_reported(ended) + runner.log


def test_a_connection_that_works_and_what_it_leads_to(
    fake: FakeCloud,
    installation: Installation,
    ours: Tenant,
    identity: CloudIdentity,
    start_runner: StartRunner,
) -> None:
    use_identity(new_project(ours, {"main.tf": ""}, name="kept"), identity, keep_in=CONTAINER, kind="azurerm")
    federate(fake, installation, subject_of(ours, identity, "test"))
    start_runner(fake.machine)
    ended = wait_for_end(request_connection_test(identity=identity, requested_by=ours.admin))
    outcomes = outcomes_of(ended)
    assert set(outcomes.values()) == {"pass"}
    assert ended.status == "SUCCESS", messages(ended)
    assert {"credentials", "session", "principal", "read.subnet", "state.azurerm"} <= outcomes.keys()
    assert result_of(ended)["principal"]["subscription"] == "Suite"


def test_what_is_found_and_what_may_not_be_read(
    fake: FakeCloud,
    installation: Installation,
    ours: Tenant,
    identity: CloudIdentity,
    start_runner: StartRunner,
) -> None:
    federate(fake, installation, subject_of(ours, identity, "test"))
    fake.configure(denied=["/dnszones"], throttle={"locations": 1})
    start_runner(fake.machine)
    ended = wait_for_end(request_fetch(identity=identity, requested_by=ours.admin))
    assert ended.status == "SUCCESS", messages(ended)
    subnets = find_resources(identity_ids=[identity.pk], kind="subnet")
    assert [subnet.resource["network"] for subnet in subnets] == ["first", "second"]
    assert {subnet.region for subnet in subnets} == {"westeurope"}
    assert find_resources(identity_ids=[identity.pk], kind="region")[0].id == "westeurope"
    zones = ResourceList.objects.get(identity=identity, kind="hosted_zone")
    assert "such as Reader" in zones.error


# --- what the runner itself has ----------------------------------------------------------------------

#: By the names of azurerm; Azure's own libraries have others.
APPLICATION_SAID = {
    "ARM_TENANT_ID": TENANT, "ARM_CLIENT_ID": APPLICATION, "ARM_SUBSCRIPTION_ID": SUBSCRIPTION,
}  # fmt: skip


def own_azure(
    machine: dict[str, str], new_request: NewRequest, **environ: str
) -> tuple[AmbientAzure, list[str]]:
    attempted = new_request("ambient", {"provider_hint": "azure"}, "", environ={**machine, **environ})
    return AmbientAzure(attempted.request), attempted.hidden


def test_a_secret_or_a_token_file_of_the_runners_says_who_it_is(
    fake: FakeCloud,
    installation: Installation,
    mint: Mint,
    machine: dict[str, str],
    new_request: NewRequest,
    tmp_path: Path,
) -> None:
    federate(fake, installation, SUBJECT, secret="the-applications-secret")
    token = tmp_path / "token"
    token.write_text(mint.good())
    azures = {
        "AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": APPLICATION, "AZURE_SUBSCRIPTION_ID": SUBSCRIPTION,
        "AZURE_FEDERATED_TOKEN_FILE": str(token),
    }  # fmt: skip
    for environ in ({**APPLICATION_SAID, "ARM_CLIENT_SECRET": "the-applications-secret"}, azures):
        cloud, hidden = own_azure(machine, new_request, **environ)
        who = cloud.identify()
        assert (who["account"], who["application"]) == (SUBSCRIPTION, APPLICATION)
        assert cloud.bearer(cloud.management) in hidden
        assert list(AzureInventory(cloud, []).pages("region", "global"))


def test_own_credentials_that_do_not_work_say_what_to_do(
    fake: FakeCloud,
    installation: Installation,
    mint: Mint,
    machine: dict[str, str],
    new_request: NewRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    federate(fake, installation, SUBJECT, secret="the-applications-secret")
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", fake.address)
    wrong = tmp_path / "token"
    wrong.write_text(mint.wrong("subject"))
    for environ, words in (
        ({**APPLICATION_SAID, "ARM_CLIENT_SECRET": "another-secret"}, "Invalid client secret"),
        ({**APPLICATION_SAID, "ARM_OIDC_TOKEN_FILE_PATH": str(wrong)}, "AADSTS700213"),
        ({**APPLICATION_SAID, "ARM_OIDC_TOKEN_FILE_PATH": "/nonexistent"}, "cannot be read"),
        ({"ARM_SUBSCRIPTION_ID": SUBSCRIPTION}, "own managed identity"),
    ):
        cloud, _ = own_azure(machine, new_request, **environ)
        with pytest.raises(Exception, match=r"\w") as refused:
            cloud.identify()
        assert words in cloud.explain(refused.value), environ
        assert "another-secret" not in cloud.explain(refused.value)
    without = {name: text for name, text in APPLICATION_SAID.items() if name != "ARM_SUBSCRIPTION_ID"}
    cloud, _ = own_azure(machine, new_request, **without, ARM_CLIENT_SECRET="the-applications-secret")
    with pytest.raises(CredentialsMissing, match="names no subscription"):
        cloud.identify()


def test_the_managed_identity_of_the_runners_machine(
    fake: FakeCloud, ours: Tenant, start_runner: StartRunner
) -> None:
    """Test by the machine's metadata service, then fetch the resources that it leads to."""
    identity = create_identity(
        organization=ours.organization, name="own", provider="ambient", settings={"provider_hint": "azure"},
        created_by=ours.admin,
    )  # fmt: skip
    use_identity(new_project(ours, {"main.tf": ""}, name="kept"), identity, keep_in=CONTAINER, kind="azurerm")
    fake.configure(machine={"tenant": TENANT, "client_id": APPLICATION})
    start_runner(
        fake.machine, AZURE_POD_IDENTITY_AUTHORITY_HOST=fake.address, ARM_SUBSCRIPTION_ID=SUBSCRIPTION
    )
    ended = wait_for_end(request_connection_test(identity=identity, requested_by=ours.admin))
    outcomes = outcomes_of(ended)
    assert set(outcomes.values()) == {"pass"}
    assert {"principal", "read.subnet", "state.azurerm"} <= outcomes.keys()
    who = result_of(ended)["principal"]
    assert (who["subscription"], who["application"]) == ("Suite", APPLICATION)
    fetched = wait_until(
        lambda: Job.objects.filter(type="FETCH_RESOURCES").first(), what="the fetch that follows"
    )
    assert fetched is not None
    assert wait_for_end(fetched).status == "SUCCESS"
    assert find_resources(identity_ids=[identity.pk], kind="subnet")
