"""Tests of identities: asked for, kept on the identity, followed by a look at the account, and a gate."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from console.errors import GateClosed, JobActive
from console.identities.jobs import request_connection_test
from console.identities.models import CloudIdentity
from console.identities.services import Allowed, change_identity
from console.jobs.gates import require_gates_open
from console.jobs.models import Job
from console.state.backends import choose_backend
from runner.protocol import JobType
from tests.concurrency.threads import outcomes
from tests.console.identities.identities_made import new_identity, use
from tests.console_app import Console, code_of
from tests.people import Tenant

PASSED: dict[str, Any] = {
    "checks": [
        {
            "code": "credentials",
            "title": "Credentials",
            "outcome": "pass",
            "detail": "as slipway",
            "remedy": "",
        },
        {"code": "external_id", "title": "External id", "outcome": "unknown", "detail": "", "remedy": ""},
    ],
    "principal": {"account": "123456789012", "arn": "arn:aws:sts::123456789012:assumed-role/slipway/x"},
    "session_seconds": 3599,
}
FAILED: dict[str, Any] = {
    **PASSED,
    "checks": [
        {
            "code": "read.vpc",
            "title": "May read vpc",
            "outcome": "fail",
            "detail": "Denied.",
            "remedy": "Allow it.",
        }
    ],
}


def run_test(console: Console, ours: Tenant, identity: CloudIdentity, ending: str, **report: Any) -> Job:
    job = request_connection_test(identity=identity, requested_by=ours.operator)
    runner = console.new_runner(ours, f"runner-{job.number}")
    claim = runner.claim(types=["CONNECTION_TEST"])
    assert claim is not None
    assert claim.job_id == str(job.pk)
    assert runner.start(claim).status_code == 200
    assert runner.report(claim, ending, **report).status_code == 200
    identity.refresh_from_db()
    return job


def test_a_test_is_a_job_of_the_identity(console: Console, ours: Tenant) -> None:
    identity = new_identity(ours)
    answer = console.person(ours, "operator").post(f"/api/identities/{identity.pk}/test")
    assert answer.status_code == 202
    assert (answer.json()["type"], answer.json()["identity"]) == ("CONNECTION_TEST", str(identity.pk))
    assert answer.json()["spec"] is None
    claim = console.new_runner(ours).take()
    assert (claim.type, claim.spec_id, claim.state) == ("CONNECTION_TEST", None, None)
    assert claim.identity is not None
    assert claim.identity.settings["session_name"] == f"slipway-{claim.job_number}-production"
    snapshot = claim.snapshot
    assert snapshot["format"] == 1
    assert {"region", "vpc", "subnet", "hosted_zone"} <= {*snapshot["kinds"]}
    assert snapshot["identity"]["id"] == str(identity.pk)
    assert snapshot["backends"] == []


def test_it_carries_where_the_specs_of_the_identity_keep_their_state(ours: Tenant) -> None:
    identity = new_identity(ours)
    for name in ("one", "two"):
        spec = ours.new_spec(name)
        use(ours, identity, spec)
        choose_backend(
            organization=ours.organization,
            spec=spec,
            kind="s3",
            settings={"bucket": "states", "region": "eu-central-1", "key": "shared.tfstate"},
            environment={},
            chosen_by=ours.admin,
        )
    job = request_connection_test(identity=identity, requested_by=ours.operator)
    (backend,) = job.config_snapshot["backends"]
    assert (backend["kind"], backend["settings"]["bucket"]) == ("s3", "states")


def test_one_at_a_time_for_an_identity_and_a_type(console: Console, ours: Tenant) -> None:
    operator, identity = console.person(ours, "operator"), new_identity(ours)
    path = f"/api/identities/{identity.pk}"
    first = operator.post(f"{path}/test")
    again = operator.post(f"{path}/test")
    assert (again.status_code, code_of(again)) == (409, "job_active")
    assert again.json()["holder_id"] == first.json()["id"]
    assert again.json()["holder_url"] == f"/ours/jobs/{first.json()['number']}/"
    assert operator.post(f"{path}/refresh").status_code == 202, "of another type"
    second = new_identity(ours, name="Other")
    assert operator.post(f"/api/identities/{second.pk}/test").status_code == 202


def test_of_two_clicks_at_once_one_is_taken(ours: Tenant) -> None:
    identity = new_identity(ours)

    def click() -> object:
        return request_connection_test(identity=identity, requested_by=ours.operator)

    assert sorted(outcomes([click] * 3, JobActive)) == [False, False, True]
    assert Job.objects.count() == 1


def test_a_pass_is_kept_and_resources_are_looked_for_by_themselves(console: Console, ours: Tenant) -> None:
    identity = new_identity(ours)
    job = run_test(console, ours, identity, "SUCCESS", result=PASSED)
    assert identity.test_passed is True
    assert identity.last_test["job_number"] == job.number
    assert identity.last_test["principal"] == PASSED["principal"]
    assert [line["outcome"] for line in identity.last_test["checks"]] == ["pass", "unknown"]
    shown = console.person(ours, "viewer").get(f"/api/identities/{identity.pk}").json()
    assert (shown["test_passed"], shown["session_seconds"]) == (True, 3600)
    fetch = Job.objects.get(type=JobType.FETCH_RESOURCES)
    assert (fetch.identity_id, fetch.requested_by_id) == (identity.pk, ours.operator.pk)


@pytest.mark.parametrize(
    ("ending", "report"),
    [
        ("FAILED", {"result": FAILED, "fatal": True, "error_code": "connection_test_failed",
                    "error_message": "1 of 1 checks failed."}),
        ("SUCCESS", {"result": FAILED}),
    ],
)  # fmt: skip
def test_a_failure_is_kept_with_its_remedy_and_nothing_is_looked_for(
    console: Console, ours: Tenant, ending: str, report: dict[str, Any]
) -> None:
    identity = new_identity(ours)
    run_test(console, ours, identity, ending, **report)
    assert identity.test_passed is False
    (line,) = identity.last_test["checks"]
    assert (line["outcome"], line["remedy"]) == ("fail", "Allow it.")
    assert not Job.objects.filter(type=JobType.FETCH_RESOURCES).exists()


@pytest.mark.parametrize(
    "result",
    [
        None,
        {},
        {"checks": "all well"},
        {"checks": [7, {}, {"outcome": {}}], "principal": {"a": [7]}, "session_seconds": "x"},
    ],
)
def test_a_result_of_another_shape_breaks_nothing(console: Console, ours: Tenant, result: Any) -> None:
    identity = new_identity(ours)
    run_test(console, ours, identity, "SUCCESS", result=result)
    assert identity.test_passed is True
    assert all(line["outcome"] == "unknown" for line in identity.last_test["checks"])
    assert console.person(ours, "viewer").get(f"/api/identities/{identity.pk}").status_code == 200


def test_a_test_of_other_settings_says_nothing_any_more(console: Console, ours: Tenant) -> None:
    identity = new_identity(ours)
    run_test(console, ours, identity, "SUCCESS", result=PASSED)
    changed = change_identity(identity=identity, changed_by=ours.admin, settings={"regions": ["eu-west-1"]})
    assert changed.test_passed is True, "where to look decides nothing"
    other = {"role_arn": "arn:aws:iam::123456789012:role/other"}
    changed = change_identity(identity=identity, changed_by=ours.admin, settings=other)
    assert (changed.test_passed, changed.tested_at, changed.last_test) == (None, None, {})


def test_it_runs_where_the_identity_allows_it(console: Console, ours: Tenant) -> None:
    ours.new_pool("production")
    identity = new_identity(ours, allowed=Allowed(pools=["production"]))
    job = request_connection_test(identity=identity, requested_by=ours.operator)
    assert job.pool.name == "production"
    nowhere = new_identity(ours, name="Nowhere", allowed=Allowed(pools=[]))
    answer = console.person(ours, "operator").post(f"/api/identities/{nowhere.pk}/test")
    assert (answer.status_code, code_of(answer)) == (409, "conflict")


def test_draining_takes_no_test(console: Console, ours: Tenant) -> None:
    identity = new_identity(ours)
    type(ours.organization).objects.update(draining_since=Now())
    answer = console.person(ours, "operator").post(f"/api/identities/{identity.pk}/test")
    assert (answer.status_code, code_of(answer)) == (503, "draining")


# ── the gate ─────────────────────────────────────────────────────────────────────────────────────

GATE = {"kind": "job_success", "job_type": "CONNECTION_TEST", "max_age_days": 7}


def test_the_gate_is_opened_by_a_test_of_the_specs_identity(console: Console, ours: Tenant) -> None:
    spec, identity = ours.new_spec("gated", gates=[GATE]), new_identity(ours)
    use(ours, identity, spec)

    def require() -> None:
        require_gates_open(spec=type(spec).objects.get(pk=spec.pk), type=JobType.DEPLOY)

    with pytest.raises(GateClosed, match="cloud identity Production that passed in the last 7 days"):
        require()
    run_test(console, ours, new_identity(ours, name="Other"), "SUCCESS", result=PASSED)
    with pytest.raises(GateClosed):
        require()
    run_test(console, ours, identity, "FAILED", result=FAILED, fatal=True)
    with pytest.raises(GateClosed):
        require()
    run_test(console, ours, identity, "SUCCESS", result=PASSED)
    require()
    CloudIdentity.objects.update(tested_at=Now() - timedelta(days=7, hours=1))
    with pytest.raises(GateClosed):
        require()
    CloudIdentity.objects.update(tested_at=Now() - timedelta(days=6, hours=23))
    require()
    change_identity(
        identity=identity, changed_by=ours.admin, settings={"role_arn": "arn:aws:iam::123456789012:role/o"}
    )
    with pytest.raises(GateClosed):
        require()
