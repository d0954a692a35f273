"""The pages of identities: their content for each role, and nothing typed becomes a part of the page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from console.identities.models import CloudIdentity
from console.identities.services import Allowed
from console.jobs.models import Attempt, Job
from console.jobs.services import request_destroy
from tests.console.identities.identities_made import AWS, new_identity, token_of, use
from tests.console.identities.test_connection_tests import FAILED, PASSED, run_test
from tests.console.identities.test_resources import begin, send, subnets
from tests.console_app import Console
from tests.people import Tenant
from tests.plans_made import a_plan
from tests.specs.editing import Browser

HOSTILE = "<script>alert(1)</script>"
REORDERING = "\N{RIGHT-TO-LEFT OVERRIDE}"


def test_connecting_changing_and_deleting_by_forms_without_scripts(ours: Tenant) -> None:
    admin = Browser(ours, ours.admin, scripts=False)
    assert "AWS" in admin.reads("identities/connect/")
    form = {"provider": "aws", "name": "Live", "specs": "*", "environments": "*", "pools": "*", **AWS}
    answer = admin.post("identities/connect/", form)
    assert (answer.status_code, answer["location"]) == (302, "/ours/identities/live/setup/")
    assert "sts:AssumeRoleWithWebIdentity" in admin.reads("identities/live/setup/")
    changes = {**form, "region": "eu-west-1", "environments": "some", "environment": "staging production"}
    assert admin.post("identities/live/change/", changes).status_code == 302
    identity = CloudIdentity.objects.get()
    assert identity.allowed_environments == ["production", "staging"]
    assert "eu-west-1" in admin.reads("identities/live/")
    assert admin.post("identities/live/delete", confirmation="live").status_code == 400
    assert admin.post("identities/live/delete", confirmation="Live").status_code == 302
    assert not CloudIdentity.objects.exists()


@pytest.mark.parametrize("provider", ["aws", "gcp", "azure", "ambient"])
def test_each_provider_has_its_pages(ours: Tenant, provider: str) -> None:
    new_identity(ours, provider, name="one")
    admin = Browser(ours, ours.admin)
    for path in ("identities/", "identities/one/", "identities/one/setup/", "identities/one/change/"):
        assert "one" in admin.reads(path)
    assert "Connect" in admin.reads("identities/connect/", provider=provider)


def test_who_sees_which_button(ours: Tenant, theirs: Tenant) -> None:
    new_identity(ours, name="one")
    pages = {
        role: Browser(ours, getattr(ours, role)).reads("identities/one/")
        for role in ("viewer", "operator", "admin")
    }
    assert "Test the connection" not in pages["viewer"]
    assert "Test the connection" in pages["operator"]
    assert "identities/one/change/" not in pages["operator"]
    assert "identities/one/change/" in pages["admin"]
    operator, viewer = Browser(ours, ours.operator), Browser(ours, ours.viewer)
    assert operator.get("identities/connect/").status_code == 403
    assert operator.post("identities/one/change/", name="x").status_code == 403
    assert viewer.post("identities/one/test").status_code == 403
    assert operator.post("identities/one/test").status_code == 200
    assert operator.post("identities/one/refresh").status_code == 200
    stranger = Browser(ours, theirs.admin)
    for path in ("identities/", "identities/one/", "identities/one/setup/", "identities/options"):
        assert stranger.get(path).status_code == 404


def test_nothing_that_was_typed_or_found_becomes_a_part_of_the_page(console: Console, ours: Tenant) -> None:
    identity = new_identity(ours, name=HOSTILE)
    hostile: dict[str, Any] = {
        "checks": [
            {"code": HOSTILE, "title": HOSTILE, "outcome": HOSTILE, "detail": HOSTILE, "remedy": HOSTILE}
        ],
        "principal": {HOSTILE: HOSTILE},
    }
    run_test(console, ours, identity, "FAILED", result=hostile, fatal=True, error_message=HOSTILE)
    runner = console.new_runner(ours, "r")
    claim = begin(ours, identity, runner)
    turned = f"{HOSTILE}{REORDERING}"
    send(runner, claim, [{"id": HOSTILE, "name": turned, "x": {"y": turned}}], error=turned)
    runner.fail(claim, fatal=True, error_message=HOSTILE)
    admin = Browser(ours, ours.admin)
    slug = identity.slug
    paths = ["", f"{slug}/", f"{slug}/setup/", f"{slug}/change/", f"{slug}/delete"]
    pages = [admin.reads(f"identities/{path}") for path in paths]
    pages.append(admin.reads(f"identities/{slug}/resources/", kind="subnet", region="eu-central-1"))
    pages += [admin.reads("specs/new/", source="inline"), admin.reads(f"jobs/{claim.job_number}/")]
    for page in pages:
        assert HOSTILE not in page
        assert REORDERING not in page
        assert "&lt;script&gt;" in page
    options = admin.get("identities/options", kind="subnet")
    assert options["content-type"] == "application/json"
    assert options.json()["options"][0]["value"] == HOSTILE


def test_the_page_says_what_failed_and_what_to_do(console: Console, ours: Tenant) -> None:
    identity = new_identity(ours, name="one")
    run_test(console, ours, identity, "FAILED", result=FAILED, fatal=True)
    page = Browser(ours, ours.viewer).reads("identities/one/")
    assert "Allow it." in page
    assert "failed" in Browser(ours, ours.viewer).reads("identities/")


def test_its_jobs_are_listed_under_its_name_and_lead_back_to_it(console: Console, ours: Tenant) -> None:
    identity = new_identity(ours, name="one")
    job = run_test(console, ours, identity, "SUCCESS", result=PASSED)
    viewer = Browser(ours, ours.viewer)
    assert 'href="/ours/identities/one/">one</a>' in viewer.reads("jobs/")
    page = viewer.reads(f"jobs/{job.number}/")
    assert "of one</h1>" in page
    assert "The connection works" in page


def test_pickers_offer_what_was_found(console: Console, ours: Tenant, theirs: Tenant) -> None:
    scanned, unscanned = new_identity(ours, name="one"), new_identity(ours, name="other")
    runner = console.new_runner(ours, "r")
    claim = begin(ours, scanned, runner)
    send(runner, claim, subnets("a"))
    send(runner, claim, [{"id": "Z1", "name": "zone"}], kind="hosted_zone", region="global")
    operator = Browser(ours, ours.operator)

    def suggestions(**query: str) -> list[str]:
        answer = operator.get("identities/options", **query)
        return [option["value"] for option in answer.json()["options"]]

    assert suggestions(kind="subnet") == ["subnet-a"]
    assert suggestions(kind="subnet", region="eu-west-1") == []
    assert suggestions(kind="hosted_zone", region="eu-west-1") == ["Z1"], "of the whole account"
    assert suggestions(kind="subnet", q="nothing") == []
    assert suggestions(kind="subnet", identity=str(unscanned.pk)) == []
    foreign = new_identity(theirs)
    assert operator.get("identities/options", kind="subnet", identity=str(foreign.pk)).status_code == 404
    form = operator.reads("specs/new/", source="blueprint", name="aws-platform")
    assert '<resource-picker kind="hosted_zone"' in form
    assert "one · AWS 123456789012" in form


def test_a_spec_is_offered_what_allows_it(ours: Tenant) -> None:
    new_identity(ours, name="For all")
    new_identity(ours, name="For production", allowed=Allowed(environments=["production"]))
    assert ours.spec.environment == "development"
    page = Browser(ours, ours.operator).reads("specs/network/settings/")
    assert "For all ·" in page
    assert "For production ·" not in page


# ── the lifetime guard ───────────────────────────────────────────────────────────────────────────


def test_a_new_spec_is_offered_what_may_allow_it(ours: Tenant) -> None:
    new_identity(ours, name="Open")
    new_identity(ours, name="Named", allowed=Allowed(specs=[ours.spec.slug]))
    page = Browser(ours, ours.operator).reads("specs/new/", source="inline")
    assert "Open · AWS" in page
    assert "Named · AWS" not in page


def test_a_session_that_no_token_tells_of_is_shown_as_the_runner_renews_it(
    console: Console, ours: Tenant
) -> None:
    """At half of its time: after 50 minutes, sessions of half an hour were renewed three times."""
    use(ours, new_identity(ours, name="one", method="assume_role", session_seconds=1800))
    job = ours.request()
    console.new_runner(ours).take_and_start()
    Attempt.objects.filter(job=job).update(started_at=Now() - timedelta(minutes=50))
    header = Browser(ours, ours.viewer).reads(f"jobs/{job.number}/header")
    assert "credentials expire" in header
    assert "renewed 3 times" in header


def test_a_job_says_until_when_its_credentials_are_good(console: Console, ours: Tenant) -> None:
    use(ours, new_identity(ours, name="one"))
    job = ours.request()
    viewer = Browser(ours, ours.viewer)
    assert "<dt>identity</dt>" in viewer.reads(f"jobs/{job.number}/")
    assert "credentials expire" not in viewer.reads(f"jobs/{job.number}/")
    runner = console.new_runner(ours)
    claim = runner.take_and_start()
    token_of(runner, claim)
    token_of(runner, claim)
    header = viewer.reads(f"jobs/{job.number}/header")
    assert "credentials expire" in header
    assert "renewed 1 time" in header


def test_a_deploy_that_usually_outlives_its_session_is_warned_about(console: Console, ours: Tenant) -> None:
    use(ours, new_identity(ours, name="one", session_seconds=1800))
    viewer = Browser(ours, ours.viewer)
    plan = a_plan(console, ours)
    page = f"specs/network/plans/{plan.number}/"
    assert "usually takes" not in viewer.reads(page)
    for minutes in (20, 45, 50):
        Job.objects.create(
            organization=ours.organization, number=1000 + minutes, type="DEPLOY", spec=ours.spec,
            pool=ours.pool, config_snapshot={}, snapshot_hash="", max_retries=0, timeout_seconds=1,
            status="SUCCESS", started_at=Now() - timedelta(minutes=minutes), finished_at=Now(),
        )  # fmt: skip
    warned = "A DEPLOY of network usually takes 45 min 00 s, and a session of one lasts 30 min 00 s"
    assert warned in viewer.reads(page)
    job = request_destroy(spec=ours.spec, confirmation="network", requested_by=ours.operator)
    assert "usually takes" not in viewer.reads(f"jobs/{job.number}/"), "destroys are another matter"
