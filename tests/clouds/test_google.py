"""Google Cloud: federation by the console's token, then a service account, in google-auth and Terraform."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.identities.keys import current_key, finish_rotation
from console.identities.models import CloudIdentity, ResourceList
from console.identities.resources import find_resources
from console.identities.services import create_identity
from console.jobs.identity_jobs import request_connection_test, request_fetch
from runner.credentials.gcp import Gcp
from runner.outcome import StepFailed
from tests.clouds.conftest import NewOccasion, StartRunner
from tests.clouds.starting import GOOGLE_PROJECT, GOOGLE_PROVIDER, SERVICE_ACCOUNT, Gate, gcp
from tests.clouds.tokens import SUBJECT, WRONGS, Mint
from tests.clouds.working import everything_told, kid_of, outcomes_of, result_of, use_identity, waiting_files
from tests.people import Tenant
from tests.runner.installation import Installation, messages, new_project, wait_for_end
from tests.state.emulators import BUCKET
from tests.waiting import wait_until

SETTINGS = {"provider": GOOGLE_PROVIDER, "service_account": SERVICE_ACCOUNT, "project": GOOGLE_PROJECT}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    with gcp(tmp_path_factory.mktemp("google")) as gate:
        yield gate


@pytest.fixture
def gate(started: Gate, installation: Installation) -> Gate:
    """A provider that trusts this console, and a service account for all that it lets in."""
    started.tell(forget=True)
    trusted = {"issuer": installation.url, "subject_prefix": "organization:ours@"}
    started.tell(providers={GOOGLE_PROVIDER: trusted}, service_accounts={SERVICE_ACCOUNT: ["organization:"]})
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
    gate: Gate, mint: Mint, new_occasion: NewOccasion
) -> None:
    attempted = new_occasion("gcp", SETTINGS, mint.good(), environ=gate.machine)
    cloud = Gcp(attempted.occasion)
    handed = cloud.open()
    assert handed.principal == SERVICE_ACCOUNT
    assert cloud.bearer() in attempted.hidden
    description = Path(handed.environ["GOOGLE_APPLICATION_CREDENTIALS"])
    assert description.stat().st_mode & 0o777 == 0o600
    assert json.loads(description.read_text())["audience"] == f"//iam.googleapis.com/{GOOGLE_PROVIDER}"
    assert gate.seen(action="exchange", subject=SUBJECT)


@pytest.mark.parametrize("how", WRONGS)
def test_a_token_that_is_wrong_in_one_respect_does_not(
    how: str, gate: Gate, mint: Mint, new_occasion: NewOccasion
) -> None:
    token = mint.wrong(how)
    cloud = Gcp(new_occasion("gcp", SETTINGS, token, environ=gate.machine).occasion)
    with pytest.raises(StepFailed, match="Google did not accept the console's token") as refused:
        cloud.open()
    assert refused.value.fatal
    assert token not in str(refused.value)
    expected = {"expiry": "expired", "key": "signature"}.get(how, how)
    assert gate.seen(action="exchange", rejected=expected)


def test_a_service_account_that_is_not_for_it(gate: Gate, mint: Mint, new_occasion: NewOccasion) -> None:
    gate.tell(service_accounts={SERVICE_ACCOUNT: ["organization:theirs@"]})
    cloud = Gcp(new_occasion("gcp", SETTINGS, mint.good(), environ=gate.machine).occasion)
    with pytest.raises(StepFailed, match=r"roles/iam\.workloadIdentityUser"):
        cloud.open()


def test_terraform_on_gcs_renews_in_the_middle_of_an_apply_and_of_a_key_rotation(
    gate: Gate, ours: Tenant, identity: CloudIdentity, start_runner: StartRunner, tmp_path: Path
) -> None:
    project = new_project(ours, waiting_files(tmp_path), name="on-gcs")
    use_identity(project, identity, keep_in={"bucket": BUCKET}, kind="gcs")
    gate.tell(session_seconds=12)
    runner = start_runner(gate.machine, SLIPWAY_RUNNER_RENEW_SECONDS="1")
    deploy = project.deploy(project.plan(seconds=90))
    wait_until((tmp_path / "begun").exists, seconds=30, what="the middle of the apply")
    before = {one["jti"] for one in gate.seen(action="exchange")}
    used_before = {one["token"] for one in gate.seen() if one["action"].startswith("storage")}
    token_file = next(runner.data_dir.glob("work/*/credentials/identity-token"))
    token, old_key = token_file.read_text(), current_key().kid
    finish_rotation()
    wait_until(lambda: kid_of(token_file.read_text()) != old_key, seconds=10, what="a token of the new key")
    # Go's library renews ten seconds before the end.
    ends_at = time.time() + 2
    wait_until(lambda: time.time() > ends_at, what="the time at which the first access token is renewed")
    (tmp_path / "go").touch()
    ended = wait_for_end(deploy, seconds=90)
    assert ended.status == "SUCCESS", messages(ended)
    assert {one["jti"] for one in gate.seen(action="exchange")} - before
    saved = gate.seen(action="storage POST")[-1]["token"]
    assert saved not in used_before
    assert runner.workdirs() == []
    assert token not in everything_told(ended) + runner.log


def test_a_connection_that_works_and_what_it_leads_to(
    gate: Gate, ours: Tenant, identity: CloudIdentity, start_runner: StartRunner
) -> None:
    use_identity(
        new_project(ours, {"main.tf": ""}, name="kept"), identity, keep_in={"bucket": BUCKET}, kind="gcs"
    )
    start_runner(gate.machine)
    ended = wait_for_end(request_connection_test(identity=identity, requested_by=ours.admin))
    outcomes = outcomes_of(ended)
    assert set(outcomes.values()) == {"pass"}
    assert ended.status == "SUCCESS", messages(ended)
    assert {"credentials", "session", "principal", "read.subnet", "state.gcs"} <= outcomes.keys()
    assert result_of(ended)["principal"]["service_account"] == SERVICE_ACCOUNT


def test_what_is_found_and_what_may_not_be_read(
    gate: Gate, ours: Tenant, identity: CloudIdentity, start_runner: StartRunner
) -> None:
    gate.tell(denied=["/managedZones"], throttle={"networks": 1})
    start_runner(gate.machine)
    ended = wait_for_end(request_fetch(identity=identity, requested_by=ours.admin))
    assert ended.status == "SUCCESS", messages(ended)
    found = {one.id: one for one in find_resources(identity_ids=[identity.pk])}
    second = found["projects/suite-project/regions/us-east1/subnetworks/second"]
    assert (second.region, second.resource["cidr"], second.resource["network"]) == (
        "us-east1",
        "10.0.0.0/20",
        "main",
    )
    assert found["projects/suite-project/global/networks/main"].kind == "vpc"
    assert found["cluster"].region == "europe-west1"
    zones = ResourceList.objects.get(identity=identity, kind="hosted_zone")
    assert "roles/viewer" in zones.error
