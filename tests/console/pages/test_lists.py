"""The lists of Specs, jobs and runners, search, kept filters, and what a hostile name does to them."""

from __future__ import annotations

import logging
import re

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from console.accounts.models import SavedFilter
from console.pages.selectors import jobs as listing
from console.pages.selectors import specs as spec_list
from console.runners.models import RegistrationToken, Runner
from runner.protocol import to_wire
from specs.models import Spec
from tests.console.pages.sample_organization import create_sample, pages_of
from tests.console.pages.test_roles import client_of
from tests.console.plans.review import write_state
from tests.console_app import Console
from tests.page_source import source_of
from tests.people import Tenant, facts
from tests.plans_made import a_plan
from tests.specs.editing import Browser


def names_in(shown: str) -> list[str]:
    return re.findall(r'class="main-link" href="[^"]+">([^<]+?)\s*<', shown)


def more_in(shown: str) -> str:
    found = re.search(r'href="\?([^"]*)" rel="next"', shown)
    return found.group(1).replace("&amp;", "&") if found else ""


@pytest.mark.parametrize("sort", ["name", "newest"])
def test_every_spec_is_on_exactly_one_page(ours: Tenant, monkeypatch: pytest.MonkeyPatch, sort: str) -> None:
    monkeypatch.setattr(spec_list, "PAGE_SIZE", 2)
    made = ["e", "b", "d", "a", "c"]
    for name in made:
        ours.new_spec(name)
    browser, seen, query = Browser(ours, ours.viewer), [], f"sort={sort}"
    while query:
        shown = browser.reads(f"specs/?{query}")
        seen += names_in(shown)
        query = more_in(shown)
    assert seen == (sorted(made) if sort == "name" else made[::-1])


def test_specs_are_filtered_by_what_the_address_says(ours: Tenant) -> None:
    for name in ("shop", "shopping", "bank"):
        ours.new_spec(name)
    Spec.objects.filter(slug="bank").update(environment="production")
    browser = Browser(ours, ours.viewer)
    assert names_in(browser.reads("specs/", q="SHOP")) == ["shop", "shopping"]
    assert names_in(browser.reads("specs/", environment="production")) == ["bank"]
    assert names_in(browser.reads("specs/", standing="deployed")) == []
    assert "No Specs match these filters" in browser.reads("specs/", q="nothing")
    assert len(names_in(browser.reads("specs/", standing="never"))) == 3


def test_the_next_page_begins_after_a_spec_of_this_list_or_at_the_beginning(
    ours: Tenant, theirs: Tenant
) -> None:
    for name in ("a", "z"):
        ours.new_spec(name)
    foreign = theirs.new_spec("m")
    never_deployed = Spec.objects.get(organization=ours.organization, name="a")
    Spec.objects.filter(organization=ours.organization, name="z").update(deployed_at=timezone.now())
    browser = Browser(ours, ours.viewer)
    assert names_in(browser.reads("specs/", after=str(never_deployed.pk))) == ["z"]
    assert names_in(browser.reads("specs/", after=str(foreign.pk))) == ["a", "z"]
    assert names_in(browser.reads("specs/", after="nonsense")) == ["a", "z"]
    assert names_in(browser.reads("specs/", after=str(never_deployed.pk), sort="deployed")) == ["z"]


def test_the_environments_to_filter_by_are_those_of_the_listed_specs(ours: Tenant, theirs: Tenant) -> None:
    assert spec_list.environments_of(ours.organization) == []
    for name, environment in (("a", "staging"), ("b", "production"), ("c", "staging"), ("d", "old")):
        ours.new_spec(name)
        Spec.objects.filter(organization=ours.organization, name=name).update(environment=environment)
    theirs.new_spec("theirs")
    Spec.objects.filter(organization=ours.organization, name="d").update(archived_at=timezone.now())
    assert spec_list.environments_of(ours.organization) == ["production", "staging"]


def specs_read() -> int:
    """How many rows of Specs PostgreSQL has read in this transaction, through whatever it read them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'specs_spec'"
        )
        return int(cursor.fetchone()[0])


def test_a_page_by_name_and_the_environments_do_not_read_every_spec(ours: Tenant) -> None:
    spec = ours.new_spec("one")
    Spec.objects.bulk_create(
        Spec(
            organization=ours.organization,
            name=f"{n:04}",
            slug=f"{n:04}",
            source_kind=spec.source_kind,
            pool=spec.pool,
        )
        for n in range(3_000)
    )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE specs_spec")
    with transaction.atomic():
        before = specs_read()
        first = spec_list.page_of_specs(ours.organization, spec_list.Filters())
        second = spec_list.page_of_specs(ours.organization, spec_list.Filters(), after=first.next_after)
        assert spec_list.environments_of(ours.organization) == [spec.environment]
        assert specs_read() - before < 200
    assert len(first.rows) == len(second.rows) == spec_list.PAGE_SIZE


def test_a_spec_tells_its_last_plan_and_deploy_and_who_holds_it(console: Console, ours: Tenant) -> None:
    a_plan(console, ours)
    row = Browser(ours, ours.viewer).reads("specs/")
    assert re.search(r'data-label="Last plan".*SUCCESS.*#1', row)
    assert re.search(r'data-label="Last deploy"><span class="soft">never', row)
    assert re.search(r'data-label="Drift"><span class="soft">none seen', row)


def test_a_specs_plans_are_listed_with_what_became_of_them(console: Console, ours: Tenant) -> None:
    browser = Browser(ours, ours.viewer)
    ours.spec.refresh_from_db()
    assert "Never planned" in browser.reads("specs/network/plans/")
    a_plan(console, ours)
    a_plan(console, ours)
    shown = browser.reads("specs/network/plans/")
    assert re.findall(r"/plans/(\d+)/\">", shown) == ["2", "1"]
    assert "not applied" in shown
    assert re.findall(r"/plans/(\d+)/\">", browser.reads("specs/network/plans/", before="2")) == ["1"]
    assert browser.get("specs/network/resources")["Location"] == "/ours/specs/network/state/"
    write_state(ours, ours.spec, "one", serial=3)
    assert browser.get("specs/network/resources")["Location"] == "/ours/specs/network/state/3/"


def jobs_shown(browser: Browser, **query: str) -> list[int]:
    return [int(number) for number in re.findall(r'/jobs/(\d+)/">', browser.reads("jobs/", **query))]


def test_jobs_are_filtered_and_name_their_runner(console: Console, ours: Tenant) -> None:
    a_plan(console, ours)
    ours.request(spec=ours.new_spec("other"))
    browser = Browser(ours, ours.viewer)
    assert jobs_shown(browser) == [2, 1]
    assert jobs_shown(browser, status="QUEUED") == [2]
    assert jobs_shown(browser, runner="planner-1") == [1]
    assert jobs_shown(browser, by="ours-operator", type="PLAN", spec="other") == [2]
    assert jobs_shown(browser, by="ours-viewer") == []
    assert "?runner=planner-1" in browser.reads("jobs/")


def test_a_rare_job_is_looked_for_a_stretch_at_a_time(
    console: Console, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LOOKED_THROUGH", 2)
    a_plan(console, ours)
    for number in range(4):
        ours.request(spec=ours.new_spec(f"later-{number}"))
    browser = Browser(ours, ours.viewer)
    shown = browser.reads("jobs/", status="SUCCESS")
    assert "Searched jobs down to #4" in shown
    query = more_in(shown)
    assert "Search before #2" in browser.reads(f"jobs/?{query}")
    assert "#1</span>" in browser.reads("jobs/?status=SUCCESS&before=2")
    assert jobs_shown(browser, status="QUEUED") == [5, 4, 3, 2]


def test_a_filter_is_kept_used_and_forgotten_by_its_owner(ours: Tenant, theirs: Tenant) -> None:
    browser = Browser(ours, ours.viewer)
    browser.post("jobs/filters", name="red plans", type="PLAN", status="FAILED")
    assert 'href="?type=PLAN&amp;status=FAILED"' in browser.reads("jobs/")
    kept = SavedFilter.objects.get()
    assert "red plans" not in Browser(ours, ours.admin).reads("jobs/")
    assert Browser(ours, ours.admin).post(f"jobs/filters/{kept.pk}/remove").status_code == 404
    assert browser.post("jobs/filters", name=" ").status_code == 400
    browser.post(f"jobs/filters/{kept.pk}/remove")
    assert not SavedFilter.objects.exists()


def test_search_finds_specs_by_name_and_jobs_by_number(
    console: Console, ours: Tenant, theirs: Tenant
) -> None:
    a_plan(console, ours)
    a_plan(console, theirs, spec=theirs.new_spec("network-of-theirs"))
    browser = Browser(ours, ours.viewer, scripts=False)
    found = browser.reads("search", q="NETW")
    assert names_in(found) == ["network", "Plan"]
    assert "/ours/jobs/1/" in browser.reads("search", q="#1")
    assert "No results" in browser.reads("search", q="theirs")
    assert "No results" in browser.reads("search", q="#4711")
    assert "Type a name or a number" in browser.reads("search")


def test_the_runners_page_counts_slots_and_jobs(console: Console, ours: Tenant) -> None:
    runner = console.new_runner(ours, "eu-1", slots=3)
    ours.request()
    runner.take_and_start()
    shown = Browser(ours, ours.viewer).reads("runners/")
    assert "1 of 3" in shown
    assert re.search(r'\?runner=eu-1">1</a>', shown)
    assert "Revoke" not in shown
    admin = Browser(ours, ours.admin)
    admin.post(f"runners/{Runner.objects.get().pk}/revoke")
    assert "REVOKED" in admin.reads("runners/")


def registration(ours: Tenant) -> tuple[str, str]:
    """The token that the page shows once, and the address that waits for whoever comes with it."""
    shown = source_of(Browser(ours, ours.admin, scripts=False).post("runners/add/", pool="default"))
    token = re.findall(r"slt_[A-Za-z0-9_-]{20,}", shown)[0]
    return token, f"runners/add/{RegistrationToken.objects.latest('pk').pk}/"


def test_the_page_of_a_new_runner_follows_it_from_contact_to_its_first_job(
    console: Console, ours: Tenant
) -> None:
    token, waiting = registration(ours)
    browser = Browser(ours, ours.admin)
    first = browser.reads(waiting)
    assert token not in first
    assert first.count("is-success") == 0
    body = {"token": token, "name": "new", "facts": to_wire(facts())}
    answer = console.anybody().post("/api/runners/register", json=body)
    assert answer.status_code == 201, answer.text
    assert browser.reads(waiting).count("is-success") == 3
    runner = console.runner(answer.json()["credential"])
    ours.request()
    assert runner.succeed(runner.take_and_start()).status_code == 200
    assert "It works." in browser.reads(waiting)


def test_a_runner_that_is_refused_is_told_about(console: Console, ours: Tenant) -> None:
    console.new_runner(ours, "taken")
    token, waiting = registration(ours)
    body = {"token": token, "name": "taken", "facts": to_wire(facts())}
    assert console.anybody().post("/api/runners/register", json=body).status_code == 409
    shown = Browser(ours, ours.admin).reads(waiting)
    assert "Registration refused: A runner named taken is online." in shown
    assert shown.count("is-success") == 1


def test_a_pool_is_made_with_its_first_runner(ours: Tenant) -> None:
    browser = Browser(ours, ours.admin)
    assert browser.post("runners/add/", new_pool="Not A Name").status_code == 400
    assert "pool <code>eu-west</code>" in source_of(browser.post("runners/add/", new_pool="eu-west"))


#: A tag, an attribute's end, a script, and letters that turn what follows around.
HOSTILE = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>\u202egnp.exe{{7*7}}"


def test_a_hostile_name_is_text_on_every_page(console: Console, ours: Tenant) -> None:
    made = create_sample(console, ours, name=HOSTILE)
    client = client_of(ours.admin)
    shown_on = 0
    for page in pages_of(made):
        answer = client.get(page.path)
        if answer.streaming or not answer["Content-Type"].startswith("text/html"):
            continue
        text = source_of(answer)
        assert "<img src=x" not in text, page
        assert "<script>alert" not in text, page
        assert "49" not in text.partition("gnp.exe")[2][:3], page
        shown_on += "&lt;img src=x" in text
    assert shown_on > 25, "it is shown, and not left out"


def test_an_error_page_has_an_id_that_is_in_the_log(
    ours: Tenant, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, logger="slipway.errors")

    def break_down(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("console.pages.start.guide_of", break_down)
    client = client_of(ours.viewer)
    client.raise_request_exception = False
    for path, status, title in (
        ("/ours/jobs/4711/", 404, "Not found"),
        ("/no/such/place/", 404, "Not found"),
        ("/ours/audit/", 403, "Not allowed"),
        ("/ours/start/", 500, "Internal error"),
    ):
        answer = client.get(path)
        shown = source_of(answer)
        assert (answer.status_code, title in shown) == (status, True)
        found = re.search(r"Error ID <code>([0-9a-f-]{36})</code>", shown)
        assert found, path
        assert found.group(1) in caplog.text
        assert "out of order" not in shown


def test_too_many_wrong_passwords_are_a_page_with_an_id_too(
    ours: Tenant, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client()
    for _ in range(5):
        answer = client.post("/sign-in", {"username": "nobody", "password": "wrong"})
    assert answer.status_code == 429
    found = re.search(r"Error ID <code>([0-9a-f-]{36})</code>", source_of(answer))
    assert found
    assert found.group(1) in caplog.text
