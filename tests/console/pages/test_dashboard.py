"""The dashboard: what it says, that it costs a fixed number of statements, and its figures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console.accounts.models import Membership
from console.jobs.models import Job
from console.pages.selectors import figures
from console.pages.selectors.charts import Column, bar_chart
from console.pages.selectors.dashboard import running_jobs
from console.plans.models import Plan
from specs.models import Spec
from tests.console.plans.review import mostly_kept, protect, resource, set_guard
from tests.console_app import Console, line
from tests.people import Tenant
from tests.plans_made import a_plan
from tests.specs.editing import Browser

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


def jobs_of_the_day(tenant: Tenant, *jobs: dict[str, Any]) -> None:
    """Finished jobs at so many minutes before `NOW`: created, claimed, finished."""
    spec = tenant.spec
    for number, job in enumerate(jobs, start=1):
        at = {name: NOW - timedelta(minutes=job[name]) for name in ("created", "claimed", "finished")}
        Job.objects.create(
            organization=tenant.organization, number=number, type=job.get("type", "PLAN"), spec=spec,
            status=job.get("status", "SUCCESS"), pool=tenant.pool, config_snapshot={}, snapshot_hash="",
            max_retries=0, timeout_seconds=60, created_at=at["created"], claimed_at=at["claimed"],
            finished_at=at["finished"],
        )  # fmt: skip


def day_of(tenant: Tenant) -> figures.Day:
    return figures.figures_of_the_day(organization_id=tenant.organization.pk, newest=100, now=NOW)


def test_the_queue_of_the_day_counts_what_waited_and_for_how_long(ours: Tenant) -> None:
    jobs_of_the_day(
        ours,
        {"created": 100, "claimed": 40, "finished": 39},
        {"created": 95, "claimed": 94, "finished": 93},
        {"created": 24 * 60 + 30, "claimed": 24 * 60 - 45, "finished": 60},
    )
    day = day_of(ours).half_hours
    assert len(day) == figures.BUCKETS
    # The third had waited since before the day began.
    assert [one.depth for one in day[:3]] == [1, 1, 0]
    # From 100 to 40 minutes ago the first waited; the second came and went in the same half hour.
    assert [one.depth for one in day[-4:]] == [1, 1, 1, 0]
    waited = next(one for one in day if one.longest_wait_seconds and one.longest_wait_seconds > 1000)
    assert (waited.longest_wait_seconds, waited.median_wait_seconds) == (3600.0, (3600 + 60) / 2)


def test_endings_are_counted_by_type(ours: Tenant) -> None:
    done = {"created": 60, "claimed": 60}
    jobs_of_the_day(
        ours,
        {**done, "finished": 59},
        {**done, "finished": 57},
        {**done, "finished": 50, "status": "FAILED"},
        {**done, "finished": 50, "status": "CANCELLED", "type": "DEPLOY"},
        {"created": 60 * 30, "claimed": 60 * 30, "finished": 60 * 29, "type": "DESTROY"},
    )
    deploy, plan = day_of(ours).endings
    assert (plan.type, plan.succeeded, plan.failed, plan.success_percent) == ("PLAN", 2, 1, 67)
    assert plan.median_seconds == 120.0
    assert (deploy.type, deploy.cancelled, deploy.success_percent) == ("DEPLOY", 1, None)


def test_a_chart_has_an_axis_that_people_can_read() -> None:
    chart = bar_chart([Column("none", 0), Column("most", 37, inner=10, mark="06:00")])
    assert [one.label for one in chart.lines] == ["40", "20", "0"]
    tall = chart.bars[1]
    assert tall.y + tall.height == chart.baseline
    assert tall.inner_height < tall.height
    assert [mark.label for mark in chart.marks] == ["06:00"]
    assert bar_chart([Column("none", 0)]).is_empty


def test_a_plan_waits_for_whoever_may_approve_it_and_then_for_whoever_asked(
    console: Console, ours: Tenant
) -> None:
    plan = a_plan(console, ours, spec=protect(ours.spec))
    asked, other, viewer = (
        Browser(ours, person) for person in (ours.operator, ours.second_operator, ours.viewer)
    )
    assert "Review and approve" in other.reads("")
    assert "Review and" not in asked.reads("")
    assert "Nothing needs your attention" in viewer.reads("")
    other.post(f"specs/{ours.spec.slug}/plans/{plan.number}/approve")
    assert "Review and approve" not in other.reads("")
    assert "Review and apply" in asked.reads("")


def test_the_dashboard_counts_approvals_as_the_plan_does(console: Console, ours: Tenant) -> None:
    plan = a_plan(console, ours, spec=protect(ours.spec))
    requester, approver, admin = (
        Browser(ours, person) for person in (ours.operator, ours.second_operator, ours.admin)
    )
    approver.post(f"specs/{ours.spec.slug}/plans/{plan.number}/approve")
    assert "Review and apply" in requester.reads("")
    assert "Review and approve" not in admin.reads("")

    Membership.objects.filter(user=ours.second_operator).update(role="viewer")
    page = requester.reads("")
    assert "Review and apply" not in page
    assert "Waiting for approval" in page
    assert "0 of 1 approvals" in page
    assert "0 of 1 approvals" in requester.reads(f"specs/{ours.spec.slug}/plans/{plan.number}/")
    assert "Review and approve" in admin.reads("")
    assert "Review and" not in approver.reads("")

    admin.post(f"specs/{ours.spec.slug}/plans/{plan.number}/approve")
    assert "Review and apply" in requester.reads("")
    assert "Review and approve" not in admin.reads("")


def test_an_approval_of_another_fingerprint_is_missing_on_the_dashboard_too(
    console: Console, ours: Tenant
) -> None:
    plan = a_plan(console, ours, spec=protect(ours.spec))
    admin = Browser(ours, ours.admin)
    admin.post(f"specs/{ours.spec.slug}/plans/{plan.number}/approve")
    Plan.objects.filter(pk=plan.pk).update(provider_lock_sha256="f" * 64)
    assert "Waiting for approval" in Browser(ours, ours.operator).reads("")
    assert "Review and approve" in admin.reads("")


def test_a_guarded_plan_waits_for_an_approval_on_the_dashboard_too(console: Console, ours: Tenant) -> None:
    spec = set_guard(protect(ours.spec, approvals=0), share=0.3)
    a_plan(console, ours, spec=spec, json=mostly_kept(resource("terraform_data.one", "delete"), kept=1))
    assert "Waiting for approval" in Browser(ours, ours.operator).reads("")
    assert "Review and approve" in Browser(ours, ours.admin).reads("")


def test_a_plan_that_no_longer_fits_waits_for_nobody(console: Console, ours: Tenant) -> None:
    a_plan(console, ours)
    browser = Browser(ours, ours.operator)
    assert "Review and apply" in browser.reads("")
    Spec.objects.filter(pk=ours.spec.pk).update(plan_max_age_hours=0)
    browser.post("specs/network/variables/zones", value='["c"]')
    assert "Review and apply" not in browser.reads("")


def test_what_expires_soon_and_what_failed_are_shown(console: Console, ours: Tenant) -> None:
    soon = timezone.now() + timedelta(days=1)
    Spec.objects.filter(pk=ours.spec.pk).update(expires_at=soon, deployed_at=timezone.now())
    ours.request()
    runner = console.new_runner(ours)
    claim = runner.take_and_start()
    runner.fail(claim, error_message="The cloud said no.", fatal=True)
    shown = Browser(ours, ours.operator).reads("")
    assert "Destroy or extend" in shown
    assert "The cloud said no." in shown
    assert "0 % of 1" in shown


def test_a_running_job_tells_how_far_it_is(console: Console, ours: Tenant) -> None:
    ours.request()
    runner = console.new_runner(ours, "busy")
    claim = runner.take_and_start()
    Job.objects.update(type="DESTROY")
    for seq, address in enumerate(("one", "two", "two"), start=1):
        data = {"kind": "resource", "event": "done", "action": "delete", "address": address}
        assert runner.log_lines(claim, seq, [line("gone", **data)]).status_code == 200
    (running,) = running_jobs(ours.organization)
    assert (running.runner, running.done) == ("busy", 2)
    assert "2 resources" in Browser(ours, ours.viewer).reads("running")


def statements(browser: Browser, path: str) -> int:
    with CaptureQueriesContext(connection) as asked:
        browser.reads(path)
    return len(asked)


def test_more_of_everything_costs_no_more_statements(console: Console, ours: Tenant) -> None:
    browser = Browser(ours, ours.operator)
    pages = ("", "specs/", "jobs/", "runners/", "search?q=e", "settings/members/")
    a_plan(console, ours, spec=protect(ours.new_spec("one")))
    ours.request(spec=ours.new_spec("waiting"))
    few = {page: statements(browser, page) for page in pages}
    Job.objects.filter(status="QUEUED").update(status="CANCELLED", finished_at=timezone.now())
    for name in ("two", "three"):
        a_plan(console, ours, spec=protect(ours.new_spec(name)))
    for name in ("four", "five"):
        ours.request(spec=ours.new_spec(name))
    assert {page: statements(browser, page) for page in pages} == few
    assert max(few.values()) < 25, few


def test_a_new_organization_is_told_what_to_do_next(ours: Tenant) -> None:
    shown = Browser(ours, ours.operator).reads("")
    assert "0 of 4 steps done" in shown
    assert "Create a Spec" in shown
    assert "Nothing is running." in shown


def test_the_guide_ticks_what_is_true(console: Console, ours: Tenant) -> None:
    browser = Browser(ours, ours.operator)

    def done() -> int:
        return browser.reads("start/").count("is-success")

    assert done() == 0
    ours.spec.refresh_from_db()
    assert done() == 1
    browser.post("start/skip", skip="1")
    assert done() == 2
    a_plan(console, ours)
    assert done() == 5, "all four, and that all are done"
    assert "steps done" not in browser.reads("")
    browser.post("start/skip", skip="0")
    assert "3 of 4 steps done" in browser.reads("")
    browser.post("start/close")
    assert "steps done" not in browser.reads("")
