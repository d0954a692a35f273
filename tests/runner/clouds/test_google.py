"""Google Cloud: federation by the console's token, then a service account, in google-auth and Terraform."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from console.identities.jobs import request_connection_test, request_fetch
from console.identities.keys import current_key, finish_rotation
from console.identities.models import CloudIdentity, ResourceList
from console.identities.resources import find_resources
from console.identities.services import create_identity
from console.jobs.models import Job
from runner.clouds.gcp.ambient import AmbientGcp
from runner.clouds.gcp.credentials import GcpWorkloadIdentity
from runner.clouds.gcp.inventory import GcpInventory
from runner.outcome import StepFailed
from tests.console.state.emulators import BUCKET
from tests.people import Tenant
from tests.runner.clouds.conftest import NewRequest, StartRunner
from tests.runner.clouds.fake_clouds import GOOGLE_PROJECT, GOOGLE_PROVIDER, SERVICE_ACCOUNT, FakeCloud, gcp
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
from tests.runner.installation import Installation, messages, new_project, wait_for_end
from tests.waiting import wait_until

SETTINGS = {"provider": GOOGLE_PROVIDER, "service_account": SERVICE_ACCOUNT, "project": GOOGLE_PROJECT}
#: A machine that is not in Google Cloud; without it, this one would be asked.
NO_METADATA = {"GCE_METADATA_HOST": "127.0.0.1:9", "HOME": "/nonexistent"}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCloud]:
    with gcp(tmp_path_factory.mktemp("google")) as fake:
        yield fake


@pytest.fixture
def fake(started: FakeCloud, installation: Installation) -> FakeCloud:
    """A provider that trusts this console, and a service account for all that it lets in."""
    started.configure(forget=True)
    trusted = {"issuer": installation.url, "subject_prefix": "organization:ours@"}
    started.configure(
        providers={GOOGLE_PROVIDER: trusted}, service_accounts={SERVICE_ACCOUNT: ["organization:"]}
    )
    return started


@pytest.fixture
def mint(installation: Installation, ours: Tenant) -> Mint:
    return Mint(installation.url, f"https://iam.googleapis.com/{GOOGLE_PROVIDER}")


@pytest.fixture
def identity(ours: Tenant) -> CloudIdentity:
    return create_identity(
        organization=ours.organization,
        name="project",
        provider="gcp",
        settings=SETTINGS,
        created_by=ours.admin,
    )


def test_a_token_of_the_consoles_opens_the_service_account(
    fake: FakeCloud, mint: Mint, new_request: NewRequest
) -> None:
    attempted = new_request("gcp", SETTINGS, mint.good(), environ=fake.machine)
    cloud = GcpWorkloadIdentity(attempted.request)
    credentials = cloud.open()
    assert credentials.principal == SERVICE_ACCOUNT
    assert cloud.bearer() in attempted.hidden
    description = Path(credentials.environ["GOOGLE_APPLICATION_CREDENTIALS"])
    assert description.stat().st_mode & 0o777 == 0o600
    assert json.loads(description.read_text())["audience"] == f"//iam.googleapis.com/{GOOGLE_PROVIDER}"
    assert fake.requests(action="exchange", subject=SUBJECT)


@pytest.mark.parametrize("how", WRONGS)
def test_a_token_that_is_wrong_in_one_respect_does_not(
    how: str, fake: FakeCloud, mint: Mint, new_request: NewRequest
) -> None:
    token = mint.wrong(how)
    cloud = GcpWorkloadIdentity(new_request("gcp", SETTINGS, token, environ=fake.machine).request)
    with pytest.raises(StepFailed, match="Google did not accept the console's token") as refused:
        cloud.open()
    assert refused.value.fatal
    assert token not in str(refused.value)
    expected = {"expiry": "expired", "key": "signature"}.get(how, how)
    assert fake.requests(action="exchange", rejected=expected)


def test_a_service_account_that_is_not_for_it(fake: FakeCloud, mint: Mint, new_request: NewRequest) -> None:
    fake.configure(service_accounts={SERVICE_ACCOUNT: ["organization:theirs@"]})
    cloud = GcpWorkloadIdentity(new_request("gcp", SETTINGS, mint.good(), environ=fake.machine).request)
    with pytest.raises(StepFailed, match=r"roles/iam\.workloadIdentityUser"):
        cloud.open()


def test_terraform_on_gcs_renews_in_the_middle_of_an_apply_and_of_a_key_rotation(
    fake: FakeCloud, ours: Tenant, identity: CloudIdentity, start_runner: StartRunner, tmp_path: Path
) -> None:
    project = new_project(ours, waiting_files(tmp_path), name="on-gcs")
    project.spec.region = "europe-west1"
    project.spec.save(update_fields=["region"])
    use_identity(project, identity, keep_in={"bucket": BUCKET}, kind="gcs")
    fake.configure(session_seconds=12)
    runner = start_runner(fake.machine, SLIPWAY_RUNNER_RENEW_SECONDS="1")
    deploy = project.deploy(project.plan(seconds=90))
    wait_until((tmp_path / "begun").exists, seconds=90, what="the middle of the apply")
    assert "GOOGLE_REGION=europe-west1\n" in (tmp_path / "begun").read_text()
    before = {request["jti"] for request in fake.requests(action="exchange")}
    used_before = {request["token"] for request in fake.requests() if request["action"].startswith("storage")}
    token_file = next(runner.data_dir.glob("work/*/credentials/identity-token"))
    token, old_key = token_file.read_text(), current_key().kid
    finish_rotation()
    wait_until(lambda: kid_of(token_file.read_text()) != old_key, seconds=30, what="a token of the new key")
    # Go's library renews ten seconds before the end.
    ends_at = time.time() + 2
    wait_until(lambda: time.time() > ends_at, what="the time at which the first access token is renewed")
    expire_old_credentials(fake, token_file)
    (tmp_path / "go").touch()
    ended = wait_for_end(deploy, seconds=90)
    assert ended.status == "SUCCESS", messages(ended)
    assert {request["jti"] for request in fake.requests(action="exchange")} - before
    saved = fake.requests(action="storage POST")[-1]["token"]
    assert saved not in used_before
    assert runner.workdirs() == []
    assert token not in everything_reported(ended) + runner.log


def test_a_connection_that_works_and_what_it_leads_to(
    fake: FakeCloud, ours: Tenant, identity: CloudIdentity, start_runner: StartRunner
) -> None:
    use_identity(
        new_project(ours, {"main.tf": ""}, name="kept"), identity, keep_in={"bucket": BUCKET}, kind="gcs"
    )
    start_runner(fake.machine)
    ended = wait_for_end(request_connection_test(identity=identity, requested_by=ours.admin))
    outcomes = outcomes_of(ended)
    assert set(outcomes.values()) == {"pass"}
    assert ended.status == "SUCCESS", messages(ended)
    assert {"credentials", "session", "principal", "read.subnet", "state.gcs"} <= outcomes.keys()
    assert result_of(ended)["principal"]["service_account"] == SERVICE_ACCOUNT


def test_what_is_found_and_what_may_not_be_read(
    fake: FakeCloud, ours: Tenant, identity: CloudIdentity, start_runner: StartRunner
) -> None:
    fake.configure(denied=["/managedZones"], throttle={"networks": 1})
    start_runner(fake.machine)
    ended = wait_for_end(request_fetch(identity=identity, requested_by=ours.admin))
    assert ended.status == "SUCCESS", messages(ended)
    resources = {resource.id: resource for resource in find_resources(identity_ids=[identity.pk])}
    second = resources["projects/suite-project/regions/us-east1/subnetworks/second"]
    assert (second.region, second.resource["cidr"], second.resource["network"]) == (
        "us-east1",
        "10.0.0.0/20",
        "main",
    )
    assert resources["projects/suite-project/global/networks/main"].kind == "vpc"
    assert resources["cluster"].region == "europe-west1"
    zones = ResourceList.objects.get(identity=identity, kind="hosted_zone")
    assert "roles/viewer" in zones.error


# --- what the runner itself has ----------------------------------------------------------------------


@pytest.fixture
def key_file(fake: FakeCloud, tmp_path: Path) -> Path:
    """A service account's key, of which the fake knows the public half."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    fake.configure(keys={SERVICE_ACCOUNT: public.decode()})
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return described(
        tmp_path / "key.json", type="service_account", client_email=SERVICE_ACCOUNT,
        project_id=GOOGLE_PROJECT, private_key_id="1", private_key=private.decode(),
        token_uri=f"{fake.address}/oauth2/token",
    )  # fmt: skip


@pytest.fixture
def external_file(fake: FakeCloud, mint: Mint, tmp_path: Path) -> Path:
    """Somebody else's token in a file, as a pipeline or a cluster would have it; here the console's."""
    (tmp_path / "token").write_text(mint.good())
    sts, credentials = f"{fake.address}/sts", f"{fake.address}/iamcredentials"
    account = f"projects/-/serviceAccounts/{SERVICE_ACCOUNT}:generateAccessToken"
    return described(
        tmp_path / "external.json", type="external_account", token_url=f"{sts}/v1/token",
        audience=f"//iam.googleapis.com/{GOOGLE_PROVIDER}",
        credential_source={"file": str(tmp_path / "token")},
        subject_token_type="urn:ietf:params:oauth:token-type:jwt",
        service_account_impersonation_url=f"{credentials}/v1/{account}", quota_project_id=GOOGLE_PROJECT,
    )  # fmt: skip


def described(path: Path, **info: Any) -> Path:
    path.write_text(json.dumps(info))
    return path


def own_gcp(fake: FakeCloud, new_request: NewRequest, **environ: str) -> tuple[AmbientGcp, list[str]]:
    attempted = new_request(
        "ambient", {"provider_hint": "gcp"}, "", environ={**fake.machine, **NO_METADATA, **environ}
    )
    return AmbientGcp(attempted.request), attempted.hidden


@pytest.mark.parametrize("kind", ["key_file", "external_file"])
def test_a_credential_file_of_the_runners_says_who_it_is(
    kind: str, fake: FakeCloud, new_request: NewRequest, request: pytest.FixtureRequest
) -> None:
    path = str(request.getfixturevalue(kind))
    cloud, hidden = own_gcp(fake, new_request, GOOGLE_APPLICATION_CREDENTIALS=path)
    who = cloud.identify()
    assert (who["account"], who["service_account"]) == (GOOGLE_PROJECT, SERVICE_ACCOUNT)
    assert cloud.bearer() in hidden
    assert list(GcpInventory(cloud, []).pages("region", "global"))
    inline, _ = own_gcp(fake, new_request, GOOGLE_CREDENTIALS=Path(path).read_text())
    assert inline.identify()["account"] == GOOGLE_PROJECT


def test_own_credentials_that_do_not_work_say_what_to_do(
    fake: FakeCloud,
    key_file: Path,
    external_file: Path,
    new_request: NewRequest,
    tmp_path: Path,
) -> None:
    fake.configure(keys={}, providers={})
    gone, empty = tmp_path / "gone.json", tmp_path / "empty.json"
    empty.write_text("{}")
    other = described(tmp_path / "other.json", type="gdch_service_account")
    for path, words in (
        (key_file, "Invalid JWT Signature"),
        (external_file, "did not accept the runner's own GOOGLE_APPLICATION_CREDENTIALS"),
        (gone, "cannot be read: No such file"),
        (empty, "is not a credential file of Google's"),
        (other, "which this runner cannot use"),
        (None, "no Google credentials of its own"),
    ):
        environ = {"GOOGLE_APPLICATION_CREDENTIALS": str(path)} if path else {}
        cloud, _ = own_gcp(fake, new_request, **environ)
        with pytest.raises(Exception, match=r"\w") as refused:
            cloud.identify()
        assert words in cloud.explain(refused.value), path
        assert "PRIVATE KEY" not in cloud.explain(refused.value)


def test_the_service_account_of_the_runners_machine(
    fake: FakeCloud, ours: Tenant, start_runner: StartRunner
) -> None:
    """Test by its metadata server, then fetch the resources that it leads to."""
    identity = create_identity(
        organization=ours.organization, name="own", provider="ambient", settings={"provider_hint": "gcp"},
        created_by=ours.admin,
    )  # fmt: skip
    use_identity(
        new_project(ours, {"main.tf": ""}, name="kept"), identity, keep_in={"bucket": BUCKET}, kind="gcs"
    )
    fake.configure(machine_account=SERVICE_ACCOUNT)
    start_runner(fake.machine, GCE_METADATA_HOST=fake.address.removeprefix("http://"))
    ended = wait_for_end(request_connection_test(identity=identity, requested_by=ours.admin))
    outcomes = outcomes_of(ended)
    assert set(outcomes.values()) == {"pass"}
    assert {"principal", "read.subnet", "state.gcs"} <= outcomes.keys()
    assert result_of(ended)["principal"]["service_account"] == SERVICE_ACCOUNT
    fetched = wait_until(
        lambda: Job.objects.filter(type="FETCH_RESOURCES").first(), what="the fetch that follows"
    )
    assert fetched is not None
    assert wait_for_end(fetched).status == "SUCCESS"
    assert find_resources(identity_ids=[identity.pk], kind="subnet")
    fake.configure(machine_account=None)
    ended = wait_for_end(request_connection_test(identity=identity, requested_by=ours.admin))
    assert ended.status == "FAILED"
    assert "neither a file nor a metadata server" in outcomes_of(ended)["principal"]
    assert outcomes_of(ended)["read"].startswith("unknown")
