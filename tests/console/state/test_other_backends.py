"""State that is kept elsewhere: real Terraform, started by a real runner, on emulators of the clouds."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import boto3
import psycopg
import pytest
from botocore.exceptions import ClientError
from django.db import connection

from console.errors import BadInput, Conflict
from console.jobs.models import Job
from console.jobs.services import current_document
from console.plans.models import Plan, PlanFile
from console.plans.staleness import staleness_of
from console.state.backends import backend_document, choose_backend, environment_of
from console.state.models import StateVersion
from console.state.services import import_state
from console.vault import unseal
from runner.backends import backend_file
from runner.protocol import BACKEND_FILE, Claim
from specs.models import Spec
from tests.console.state.documents import before
from tests.console.state.emulators import REGION, TABLE, Cloud, amazon, google, microsoft, s3
from tests.console.state.terraform import TWO_RESOURCES, WAITING, Terraform
from tests.people import Tenant
from tests.runner.installation import Project, messages, new_project, wait_for_end
from tests.runner.processes import RunnerProcess, spawn_runner
from tests.runner.terraforms import terraform_on_path
from tests.throwaway_postgres import reachable_directory

KINDS = ("s3-lockfile", "s3-dynamodb", "gcs", "azurerm", "pg")

Clouds = Callable[[str], Cloud]


@pytest.fixture(scope="module")
def clouds(django_db_setup: None, django_db_blocker: Any) -> Iterator[Clouds]:
    """Starts each cloud when it is first asked for."""
    folder = reachable_directory("slipway-clouds-")
    started: dict[str, Any] = {}
    with ExitStack() as stack:

        def get(kind: str) -> Cloud:
            family = kind.partition("-")[0]
            if family not in started:
                with django_db_blocker.unblock():
                    started[family] = stack.enter_context(_start(family, folder))
            return s3(started["s3"], with_table=kind == "s3-dynamodb") if family == "s3" else started[family]

        yield get
    shutil.rmtree(folder)


def _start(family: str, folder: Path) -> Any:
    return {"s3": amazon, "gcs": google, "azurerm": microsoft, "pg": _postgres}[family](folder)


@contextmanager
def _postgres(folder: Path) -> Iterator[Cloud]:
    """A database of its own on the suite's server."""
    database = connection.settings_dict
    login = {"host": database["HOST"], "user": database["USER"], "password": database["PASSWORD"]}
    name = f"states_{database['NAME']}"
    with psycopg.connect(**login, dbname="postgres", autocommit=True) as server:
        server.execute(f'DROP DATABASE IF EXISTS "{name}"')
        server.execute(f'CREATE DATABASE "{name}"')
    where = f"host={login['host']} user={login['user']} password={login['password']}"
    yield Cloud("pg", {}, {"PG_CONN_STR": f"{where} dbname={name} sslmode=disable"})


def keep_in(cloud: Cloud, spec: Spec, tenant: Tenant) -> None:
    choose_backend(
        organization=tenant.organization,
        spec=spec,
        kind=cloud.kind,
        settings=cloud.settings,
        environment=cloud.environment,
        chosen_by=tenant.admin,
    )


def secrets_of(cloud: Cloud) -> list[str]:
    public = {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "STORAGE_EMULATOR_HOST", "AWS_ACCESS_KEY_ID"}
    values = [value for name, value in cloud.environment.items() if name not in public]
    return [value for value in values if value != "test"]


@pytest.mark.parametrize("kind", KINDS)
def test_plan_and_deploy_by_a_runner(
    clouds: Clouds, kind: str, served: str, ours: Tenant, tmp_path: Path
) -> None:
    cloud = clouds(kind)
    project = new_project(ours, {"main.tf": TWO_RESOURCES}, name=f"kept-in-{kind}")
    keep_in(cloud, project.spec, ours)
    runner = spawn_runner(
        console_url=served,
        data_dir=tmp_path / "runner",
        log=tmp_path / "runner.log",
        environ={
            "SLIPWAY_TERRAFORM": terraform_on_path(),
            "SLIPWAY_RUNNER_CREDENTIAL": ours.new_runner("runner")[1],
            "NO_PROXY": "127.0.0.1",
            **cloud.machine,
        },
    )
    try:
        plan = planned(project, runner)
        assert staleness_of(plan) is None
        deployed = wait_for_end(project.deploy(plan))
        assert deployed.status == "SUCCESS", messages(deployed)
        again = planned(project, runner)
        assert sum(again.summary.values()) == 0, "the state was found again"
        assert again.state_serial > 0
    finally:
        runner.end()
    assert not StateVersion.objects.filter(spec=project.spec).exists()
    for secret in secrets_of(cloud):
        assert secret not in everything_in(plan)
        assert secret not in json.dumps(messages(deployed))
        assert secret not in runner.log


def planned(project: Project, runner: RunnerProcess) -> Plan:
    """A plan; what went on instead is said when there is none."""
    try:
        return project.plan(seconds=60)
    except AssertionError as error:
        lines = messages(Job.objects.filter(spec=project.spec).latest("id"))
        raise AssertionError(f"{error}\n{lines}\n{runner.log}") from error


def everything_in(plan: Plan) -> str:
    """The plan file, unpacked, and the snapshot of its job: whatever stays."""
    files = PlanFile.objects.get(plan=plan)
    body = unseal(files.sealed_file, context=f"plan-file:{plan.pk}")
    with zipfile.ZipFile(BytesIO(body)) as parts:
        texts = [parts.read(name).decode("latin-1") for name in parts.namelist()]
    return "\n".join([*texts, json.dumps(plan.job.config_snapshot)])


@pytest.mark.parametrize("kind", KINDS)
def test_two_applies_at_once(clouds: Clouds, kind: str, ours: Tenant, tmp_path: Path) -> None:
    """The generated file and the environment, used by hand."""
    cloud = clouds(kind)
    spec = ours.new_spec(f"twice-in-{kind}")
    keep_in(cloud, spec, ours)
    first, second = (machine(tmp_path / name, cloud, spec) for name in ("first", "second"))
    with first.in_the_middle():
        refused = second.try_to("apply", "-no-color", "-auto-approve")
        assert refused.returncode == 1
        assert "Error acquiring the state lock" in refused.stderr
        first.let_go()
    second.let_go()
    assert "0 added" in second.apply()
    for secret in secrets_of(cloud):
        files = [path for path in second.folder.rglob("*") if path.is_file()]
        assert not [path for path in files if secret in path.read_text("latin-1")]


def test_a_repeated_request_for_a_lock_is_not_a_conflict_and_another_one_is(clouds: Clouds) -> None:
    """Of the suite's own filter: what makes the test above steady must not make it blind."""
    environment = clouds("s3-dynamodb").environment
    table = boto3.client(
        "dynamodb", endpoint_url=environment["AWS_ENDPOINT_URL_DYNAMODB"], region_name=REGION,
        aws_access_key_id="test", aws_secret_access_key="test",
    )  # fmt: skip

    def lock(holder: str) -> Any:
        item = {"LockID": {"S": "repeated"}, "Info": {"S": holder}}
        return table.put_item(TableName=TABLE, Item=item, ConditionExpression="attribute_not_exists(LockID)")

    lock("first")
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        lock("first")
    table.meta.events.register("before-send.dynamodb.PutItem", _as_a_repeat)
    assert lock("first")
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        lock("second")


def _as_a_repeat(request: Any, **_: Any) -> None:
    request.headers["amz-sdk-request"] = "attempt=2"


def machine(folder: Path, cloud: Cloud, spec: Spec) -> Terraform:
    folder.mkdir()
    terraform = Terraform(folder, {**cloud.environment, **cloud.machine}).write(main=WAITING)
    text = backend_file(claim_with(backend_document(spec)))
    assert text is not None
    (folder / BACKEND_FILE).write_text(text)
    return terraform.init()


def claim_with(backend: dict[str, Any]) -> Claim:
    return Claim(
        job_id="", job_number=1, type="PLAN", claim_id="", attempt=1, lease_seconds=60, timeout_seconds=60,
        next_log_seq=1, organization="", spec_id=None, spec=None, snapshot={"backend": backend},
        snapshot_hash="", variables={}, environment={}, sensitive_variables=[], state=None, plan=None,
    )  # fmt: skip


def choose(tenant: Tenant, *, kind: str, for_spec: bool = True, **options: Any) -> None:
    choose_backend(
        organization=tenant.organization,
        spec=tenant.spec if for_spec else None,
        kind=kind,
        chosen_by=tenant.admin,
        **{"settings": {}, "environment": None, **options},
    )


S3 = {"bucket": "b", "region": "eu-west-1"}


def test_the_organizations_choice_holds_for_specs_that_say_nothing_and_have_no_state_here(
    ours: Tenant,
) -> None:
    with_state, with_own, without_state = ours.spec, ours.new_spec("own"), ours.new_spec("fresh")
    import_state(spec=with_state, body=before(1), imported_by=ours.operator)
    choose(ours, kind="s3", for_spec=False, settings=S3, environment={"AWS_PROFILE": "states"})
    choose_backend(
        organization=ours.organization, spec=with_own, kind="console", settings={}, environment=None,
        chosen_by=ours.admin,
    )  # fmt: skip
    assert backend_document(with_state) == {"kind": "console"}
    assert backend_document(with_own) == {"kind": "console"}
    assert backend_document(without_state) == {
        "kind": "s3", "settings": {**S3, "key": "slipway/ours/fresh.tfstate"},
    }  # fmt: skip
    assert current_document(without_state)["backend"]["kind"] == "s3"


def test_a_state_that_is_here_has_to_be_moved_first(ours: Tenant) -> None:
    import_state(spec=ours.spec, body=before(1), imported_by=ours.operator)
    with pytest.raises(Conflict, match="has 4 resources"):
        choose(ours, kind="s3", settings=S3)
    choose(ours, kind="s3", settings=S3, state_was_moved=True)
    assert backend_document(ours.spec)["kind"] == "s3"


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("s3", {"region": "eu"}, "bucket: the s3 backend needs it"),
        ("s3", {**S3, "secret_key": "x"}, "secret_key: is not a setting"),
        ("s3", {**S3, "encrypt": "yes"}, "encrypt: expected yes or no"),
        ("pg", {"conn_str": "postgres://u:p@h/d"}, "conn_str: is not a setting"),
        ("azurerm", {"sas_token": "x"}, "sas_token: is not a setting"),
        ("local", {}, "kind: expected one of"),
    ],
)
def test_what_is_not_a_setting_is_refused(
    ours: Tenant, kind: str, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        choose(ours, kind=kind, settings=settings)


def test_a_place_that_all_specs_would_share_is_refused(ours: Tenant) -> None:
    with pytest.raises(BadInput, match=r"must contain \{spec\}"):
        choose(ours, kind="s3", for_spec=False, settings={**S3, "key": "one"})


def test_the_environment_is_sealed_and_stays_until_it_is_replaced(ours: Tenant) -> None:
    with pytest.raises(BadInput, match="LD_PRELOAD"):
        choose(ours, kind="s3", settings=S3, environment={"LD_PRELOAD": "x"})
    choose(ours, kind="s3", settings=S3, environment={"AWS_SECRET_ACCESS_KEY": "hidden"})
    choose(ours, kind="s3", settings={**S3, "encrypt": True})
    backend = ours.spec.state_backend
    backend.refresh_from_db()
    assert environment_of(backend) == {"AWS_SECRET_ACCESS_KEY": "hidden"}
    choose(ours, kind="gcs", settings={"bucket": "b"})
    backend.refresh_from_db()
    assert environment_of(backend) == {}, "what opened S3 does not open GCS"
