"""The restrictions of an identity: at a Spec's settings, at the request, and again at the claim."""

from __future__ import annotations

from typing import Any

import pytest

from console.errors import IdentityChanged, IdentityNotAllowed
from console.identities.services import Allowed, change_identity, delete_identity
from console.jobs.models import Job
from console.jobs.services import retry_job
from console.plans.staleness import staleness_of
from specs.models import Spec
from specs.services import change_settings
from tests.console.identities.identities_made import AWS, new_identity, use
from tests.console_app import Console, code_of
from tests.people import Tenant, fresh
from tests.plans_made import a_plan
from tests.specs.editing import INLINE, Browser


def test_a_claim_says_how_to_obtain_credentials_and_has_none(console: Console, ours: Tenant) -> None:
    policy = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}'
    identity = new_identity(ours, plan_policy=policy, regions=["eu-central-1", "eu-west-1"])
    use(ours, identity)
    job = ours.request()
    access = console.new_runner(ours).take().identity
    assert access is not None
    assert (access.identity_id, access.name, access.provider) == (str(identity.pk), "Production", "aws")
    assert access.audience == "sts.amazonaws.com"
    assert access.settings == {
        **AWS,
        "partition": "aws",
        "method": "web_identity",
        "session_seconds": 3600,
        "external_id": identity.external_id,
        "session_name": f"slipway-{job.number}-network",
        "plan_policy": policy,
        "plan_policy_arns": [],
        "regions": ["eu-central-1", "eu-west-1"],
    }


@pytest.mark.parametrize(
    ("provider", "keys"),
    [
        ("gcp", {"provider", "service_account", "project", "regions"}),
        ("azure", {"tenant_id", "client_id", "subscription_id", "regions"}),
        ("ambient", {"provider_hint", "regions"}),
    ],
)
def test_the_settings_of_the_other_clouds(
    console: Console, ours: Tenant, provider: str, keys: set[str]
) -> None:
    use(ours, new_identity(ours, provider))
    ours.request()
    access = console.new_runner(ours).take().identity
    assert access is not None
    assert access.settings.keys() == keys


def test_a_spec_without_one_says_nothing_of_it(console: Console, ours: Tenant) -> None:
    job = ours.request()
    assert console.new_runner(ours).take().identity is None
    assert "identity" not in job.config_snapshot


def test_a_long_name_still_is_a_session_that_sts_takes(console: Console, ours: Tenant) -> None:
    spec = ours.new_spec("x" * 60)
    use(ours, new_identity(ours), spec)
    ours.request(spec=spec)
    access = console.new_runner(ours).take().identity
    assert access is not None
    assert len(access.settings["session_name"]) == 64


def test_a_job_goes_to_the_region_that_was_reviewed(console: Console, ours: Tenant) -> None:
    use(ours, new_identity(ours))
    for region in ("eu-west-1", "us-east-1"):  # the second while the job waits
        change_settings(spec=ours.spec, settings={"region": region}, changed_by=ours.operator)
        if region == "eu-west-1":
            ours.request()
    claim = console.new_runner(ours).take()
    assert claim.identity is not None
    assert (claim.identity.settings["region"], claim.snapshot["region"]) == ("eu-west-1", "eu-west-1")


# ── at the settings ──────────────────────────────────────────────────────────────────────────────


def test_a_spec_cannot_name_another_organizations_identity(
    console: Console, ours: Tenant, theirs: Tenant
) -> None:
    foreign, operator = new_identity(theirs), console.person(ours, "operator")
    for name in (str(foreign.pk), foreign.slug, "nothing", "\x00", "../x"):
        answer = operator.request("PATCH", f"/api/specs/{ours.spec.pk}", json={"identity": name})
        assert (answer.status_code, code_of(answer)) == (404, "not_found"), name
        assert "Production" not in answer.text
    body = {"organization": "ours", "name": "fresh", "source": INLINE, "settings": {"identity": foreign.slug}}
    assert operator.post("/api/specs", json=body).status_code == 404


@pytest.mark.parametrize(
    ("allowed", "words"),
    [
        (Allowed(specs=[]), "does not allow the Spec network"),
        (Allowed(environments=["production"]), "does not allow the environment development"),
        (Allowed(pools=[]), "does not allow the runners of pool default"),
    ],
)
def test_one_that_does_not_allow_the_spec_is_refused_at_each_door(
    console: Console, ours: Tenant, allowed: Allowed, words: str
) -> None:
    identity, operator = new_identity(ours), console.person(ours, "operator")
    use(ours, identity)
    queued = ours.request()
    change_identity(identity=identity, changed_by=ours.admin, allowed=allowed)
    # at the claim: it fails before its runner hears of it
    runner = console.new_runner(ours)
    assert runner.claim() is None
    ended = fresh(queued)
    assert (ended.status, ended.error_code) == ("FAILED", "identity_not_allowed")
    assert words in ended.error_message
    # at the request
    answer = operator.post("/api/jobs", json={"spec": str(ours.spec.pk), "type": "PLAN"})
    assert (answer.status_code, code_of(answer)) == (403, "identity_not_allowed")
    assert words in answer.json()["detail"]
    # at the settings
    use_none = operator.request("PATCH", f"/api/specs/{ours.spec.pk}", json={"identity": None})
    assert use_none.status_code == 200
    answer = operator.request("PATCH", f"/api/specs/{ours.spec.pk}", json={"identity": identity.slug})
    assert (answer.status_code, code_of(answer)) == (403, "identity_not_allowed")
    # at a new Spec, by API and by form
    body = {
        "organization": "ours",
        "name": "fresh",
        "source": INLINE,
        "settings": {"identity": identity.slug},
    }
    answer = operator.post("/api/specs", json=body)
    assert (answer.status_code, code_of(answer)) == (403, "identity_not_allowed")
    form = {"source": "blueprint", "blueprint": "demo", "name": "fresh", "identity": str(identity.pk)}
    assert Browser(ours, ours.operator).post("specs/new/create", form).status_code == 403
    assert not Spec.objects.filter(slug="fresh").exists()


def test_a_spec_is_not_moved_out_of_what_its_identity_allows(console: Console, ours: Tenant) -> None:
    identity = new_identity(ours, allowed=Allowed(environments=["development"], pools=["default"]))
    other = ours.new_pool("other")
    live = new_identity(ours, name="Live", allowed=Allowed(environments=["production"], pools=["other"]))
    use(ours, identity)
    operator, path = console.person(ours, "operator"), f"/api/specs/{ours.spec.pk}"
    for change in ({"environment": "production"}, {"pool": "other"}):
        answer = operator.request("PATCH", path, json=change)
        assert (answer.status_code, code_of(answer)) == (403, "identity_not_allowed")
    ours.spec.refresh_from_db()
    assert (ours.spec.environment, ours.spec.pool_id) == ("development", ours.pool.pk)
    together = {"environment": "production", "pool": "other", "identity": live.slug}
    assert operator.request("PATCH", path, json=together).status_code == 200
    ours.spec.refresh_from_db()
    assert (ours.spec.identity_id, ours.spec.pool_id) == (live.pk, other.pk)


@pytest.mark.parametrize(
    ("provider", "settings", "bad", "good"),
    [
        ("aws", {}, "westeurope", "eu-west-1"),
        ("gcp", {}, "eu-west-1", "europe-west1"),
        ("azure", {}, "europe-west1", "westeurope"),
        ("ambient", {"provider_hint": "gcp"}, "eu-west-1", "europe-west1"),
    ],
)
def test_a_region_is_one_of_the_identitys_cloud(
    console: Console, ours: Tenant, provider: str, settings: dict[str, Any], bad: str, good: str
) -> None:
    identity, operator = new_identity(ours, provider, **settings), console.person(ours, "operator")
    path = f"/api/specs/{ours.spec.pk}"
    assert operator.request("PATCH", path, json={"region": bad}).status_code == 200, "of no cloud yet"
    answer = operator.request("PATCH", path, json={"identity": identity.slug})
    assert (answer.status_code, answer.json()["field"]) == (400, "region")
    both = {"identity": identity.slug, "region": good}
    assert operator.request("PATCH", path, json=both).status_code == 200
    assert operator.request("PATCH", path, json={"region": bad}).status_code == 400
    form = {"source": "blueprint", "blueprint": "demo", "name": "Other", "identity": str(identity.pk)}
    page = Browser(ours, ours.operator).post("specs/new/create", {**form, "region": bad})
    assert (page.status_code, b'data-field="region"' in page.content) == (400, True)


def test_viewers_choose_none(console: Console, ours: Tenant) -> None:
    path, body = f"/api/specs/{ours.spec.pk}", {"identity": new_identity(ours).slug}
    assert console.person(ours, "viewer").request("PATCH", path, json=body).status_code == 403


def test_a_plan_of_a_spec_that_is_no_longer_allowed_cannot_be_applied_and_says_so(
    console: Console, ours: Tenant
) -> None:
    identity = new_identity(ours)
    use(ours, identity)
    plan = a_plan(console, ours)
    change_identity(identity=identity, changed_by=ours.admin, allowed=Allowed(specs=[]))
    page = Browser(ours, ours.operator).reads(f"specs/network/plans/{plan.number}/")
    assert "does not allow the Spec network" in page
    answer = console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy")
    assert (answer.status_code, code_of(answer)) == (403, "identity_not_allowed")


# ── a changed identity ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "is_stale"),
    [
        ({"role_arn": "arn:aws:iam::123456789012:role/other"}, True),
        ({"region": "eu-west-1", "regions": []}, True),
        ({"plan_policy_arns": ["arn:aws:iam::aws:policy/ReadOnlyAccess"]}, True),
        ({"regions": ["eu-west-1"]}, False),
        ({"session_seconds": 1800}, False),
    ],
)
def test_a_plan_is_stale_once_what_decides_it_has_changed(
    console: Console, ours: Tenant, settings: dict[str, Any], is_stale: bool
) -> None:
    identity = new_identity(ours)
    use(ours, identity)
    plan = a_plan(console, ours)
    assert staleness_of(plan) is None
    change_identity(identity=identity, changed_by=ours.admin, settings=settings)
    found = staleness_of(type(plan).objects.select_related("spec", "job").get(pk=plan.pk))
    assert (found is not None) == is_stale
    if found is not None:
        assert "the cloud identity changed" in str(found)


def test_a_queued_job_does_not_run_as_something_else_than_was_asked_for(
    console: Console, ours: Tenant
) -> None:
    identity = new_identity(ours)
    use(ours, identity)
    job = ours.request()
    change_identity(
        identity=identity,
        changed_by=ours.admin,
        settings={"role_arn": "arn:aws:iam::123456789012:role/other"},
    )
    assert console.new_runner(ours).claim() is None
    assert fresh(job).error_code == "identity_changed"
    ended = Job.objects.select_related("spec__organization").get(pk=job.pk)
    with pytest.raises(IdentityChanged):
        retry_job(job=ended, requested_by=ours.operator)
    answer = console.person(ours, "operator").post(
        "/api/jobs", json={"spec": str(ours.spec.pk), "type": "PLAN"}
    )
    assert answer.status_code == 202, "asked for anew, it is of the identity as it is"


def test_a_job_whose_identity_is_gone_never_runs_without_one(console: Console, ours: Tenant) -> None:
    identity = new_identity(ours)
    use(ours, identity)
    job = ours.request()
    use(ours, None)
    delete_identity(identity=identity, deleted_by=ours.admin)
    assert console.new_runner(ours).claim() is None
    assert fresh(job).error_code == "identity_not_allowed"
    assert "deleted" in fresh(job).error_message


def test_the_next_job_is_not_held_up_by_a_refused_one(console: Console, ours: Tenant) -> None:
    identity = new_identity(ours)
    use(ours, identity)
    ours.request()
    following = ours.request(spec=ours.new_spec("second"))
    change_identity(identity=identity, changed_by=ours.admin, allowed=Allowed(specs=[]))
    runner = console.new_runner(ours)
    claim = runner.claim() or runner.take()
    assert claim.job_id == str(following.pk)


def test_require_says_no_in_the_words_of_the_api(ours: Tenant) -> None:
    identity = new_identity(ours, allowed=Allowed(specs=[]))
    with pytest.raises(IdentityNotAllowed, match="Ask an admin to allow it"):
        use(ours, identity)
