"""Every page in a real browser when there is nothing to show, and when something is refused or fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect

from console.accounts.models import User
from console.identities.models import CloudIdentity
from console.identities.services import create_identity
from console.jobs.services import cancel_job
from console.state.services import import_state
from specs.models import VariableSet
from specs.variable_sets import save_variable_set
from specs.variables import empty_bundle
from tests.console.pages.sample_organization import Sample
from tests.console.plans.review import revise, state
from tests.console_app import Background, Console
from tests.console_process import Server, database_url
from tests.journeys.browser import Cookie, Witness, open_context, running_browser, session_of
from tests.people import Tenant, facts, make_tenant
from tests.plans_made import a_plan

pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.timeout(300)]

PASSWORD = "a password of this test only"
#: Of `tests.console.plans.review.state`.
LINEAGE = "3f9f2c1e-lineage"


@dataclass(frozen=True)
class Young:
    """An organization in which everything was begun and nothing was done."""

    tenant: Tenant
    identity: CloudIdentity
    variable_set: VariableSet
    #: Cancelled before a runner came.
    silent_job: int


@pytest.fixture(scope="module")
def young(sample: Sample, background: Background) -> Young:
    tenant = make_tenant("young")
    make_tenant("bare")
    cancelled = cancel_job(job=tenant.request(spec=tenant.new_spec("hasty")), requested_by=tenant.operator)
    same = tenant.new_spec("same")
    import_state(spec=same, body=state(serial=1), imported_by=tenant.operator)
    a_plan(Console(background), tenant, spec=same, json=b'{"resource_changes":[]}', serial=1, lineage=LINEAGE)
    return Young(
        tenant=tenant,
        identity=create_identity(
            organization=tenant.organization, name="account", provider="ambient", settings={},
            created_by=tenant.admin,
        ),
        variable_set=save_variable_set(
            organization=tenant.organization, name="shared", bundle=empty_bundle(), saved_by=tenant.admin
        ),
        silent_job=cancelled.number,
    )  # fmt: skip


@pytest.fixture(scope="module")
def stale(sample: Sample) -> Sample:
    """The sample organization, whose Spec has changed since its plan; nothing is queued there."""
    cancel_job(job=sample.queued, requested_by=sample.tenant.operator)
    revise(sample.spec, variables={"name": "quay"})
    sample.tenant.admin.set_password(PASSWORD)
    sample.tenant.admin.save()
    return sample


@pytest.fixture(scope="module")
def sessions(stale: Sample, young: Young, server: Server) -> dict[str, Cookie]:
    """By name; all of them made before there is a browser."""
    nobody = User.objects.create_user("nobody", password=PASSWORD)
    for tenant in (stale.tenant, young.tenant):
        tenant.spec  # noqa: B018  made by asking for it
    people = {
        "bare": User.objects.get(username="bare-admin"), "young": young.tenant.admin, "nobody": nobody,
        "ours": stale.tenant.admin, "viewer": stale.tenant.viewer,
    }  # fmt: skip
    return {name: session_of(person, server.url) for name, person in people.items()}


@pytest.fixture(scope="module")
def browser(sessions: dict[str, Cookie]) -> Iterator[Browser]:
    with running_browser() as running:
        yield running


# Nothing to show


#: Where an organization has nothing, what its admin reads there, and the link or button to go on with.
BARE = [
    ("", "No Spec yet", "Create a Spec"),
    ("", "No runner yet: jobs wait until one claims them.", "Add a runner"),
    ("start/", "Four steps to your first plan.", "Connect a runner"),
    ("search?q=", "Type a name or a number", ""),
    ("search?q=zeppelin", "No results", "All Specs"),
    ("specs/", "No Spec yet", "Choose a blueprint"),
    ("jobs/", "No job yet", "Spec"),
    ("jobs/?status=FAILED", "No jobs match these filters", "Show all jobs"),
    ("runners/", "No runner yet", "Add a runner"),
    ("identities/", "No cloud account connected", "Connect an account"),
    ("state/", "No state yet", ""),
    ("audit/?action=nothing.like.that", "No events match these filters", "Show everything"),
    ("settings/members/", "None.", "Create invite link"),
    ("settings/tokens/", "No tokens yet.", "Create token"),
    ("variable-sets/", "No variable sets yet", "Create variable set"),
    ("blueprints/", "Terraform configurations with a form", "Use this blueprint"),
    ("specs/new/", "", "Demo"),
]

#: The same where a Spec was made and never planned.
YOUNG = [
    ("", "Nothing needs your attention.", "New Spec"),
    ("", "Nothing is running.", "New Spec"),
    ("specs/?q=zeppelin", "No Specs match these filters", "Show all Specs"),
    ("specs/network/", "Never planned", "Plan"),
    ("specs/network/", "No job yet.", "Plan"),
    ("specs/network/plans/", "Never planned", "Plan"),
    ("specs/network/variables/", "None. Providers read things such as", ""),
    ("specs/network/revisions/compare?from=1&to=1", "No differences", "Revisions"),
    ("specs/network/state/", "No state yet", "Upload new version"),
    ("specs/same/plans/1/", "No changes", "Apply (outputs only)"),
    ("specs/same/plans/1/?q=zeppelin", "No changes", ""),
    ("specs/same/state/1/", "This state has no resources.", ""),
    ("identities/account/", "Not tested with the current settings.", "Test the connection"),
    ("identities/account/", "Not scanned yet.", ""),
]


def test_a_page_with_nothing_to_show_says_so_and_what_to_do_next(
    browser: Browser, server: Server, sessions: dict[str, Cookie], young: Young
) -> None:
    for who, pages in (("bare", BARE), ("young", YOUNG)):
        context = open_context(browser, sessions[who])
        witness, page = Witness(context), context.new_page()
        for path, words, step in pages:
            page.goto(f"{server.url}/{who}/{path}")
            reads(page, words, step)
        assert witness.complaints == []
        context.close()


def reads(page: Page, words: str, step: str) -> None:
    main = page.locator("main")
    expect(main).to_contain_text(words)
    if step:
        either = main.get_by_role("link", name=step).or_(main.get_by_role("button", name=step))
        expect(either.first).to_be_visible(timeout=2000)


def test_a_job_without_a_line_and_a_set_without_a_variable_say_so(
    browser: Browser, server: Server, sessions: dict[str, Cookie], young: Young
) -> None:
    context = open_context(browser, sessions["young"])
    witness, page = Witness(context), context.new_page()
    page.goto(f"{server.url}/young/jobs/{young.silent_job}/")
    reads(page, "This job wrote no log.", "Retry")
    page.goto(f"{server.url}/young/variable-sets/{young.variable_set.pk}/")
    reads(page, "No variables yet.", "Add…")
    assert witness.complaints == []
    context.close()


def test_who_belongs_to_no_organization_is_told_whom_to_ask(
    browser: Browser, server: Server, sessions: dict[str, Cookie]
) -> None:
    context = open_context(browser, sessions["nobody"])
    page = context.new_page()
    page.goto(f"{server.url}/account/")
    reads(
        page, "You are not a member of any organization. Ask an admin for an invitation.", "Change password"
    )
    page.goto(server.url)
    reads(page, "a member of no organization. Ask an admin to add you to one.", "Back to home")
    context.close()


# Refused


#: A form of an admin's, what is filled in, the button, and what then stands beside it.
REFUSED: list[tuple[str, dict[str, str], str, str]] = [
    ("ours/settings/", {"Name": " "}, "Save name", "give the organization a name"),
    ("ours/settings/tokens/", {"Name": " "}, "Create token", "Say what the token is for"),
    (
        "ours/variable-sets/",
        {"New variable set name": "network"},
        "Create variable set",
        "choose another name",
    ),
    (
        "ours/blueprints/",
        {"Name": "No Name", "Address": "https://git.example/x.git"},
        "Add blueprint",
        "The name has letters, digits and hyphens only.",
    ),
    ("ours/state/backend", {"Settings": "nothing"}, "Save backend", "Line 1: expected name = value"),
    (
        "ours/specs/network/state/backend",
        {"Settings": "nothing"},
        "Save backend",
        "Line 1: expected name = value",
    ),
    (
        "ours/specs/network/destroy",
        {"Type network to confirm": "Network"},
        "Destroy",
        "to confirm. Nothing was changed.",
    ),
    (
        "ours/specs/network/state/1/roll-back",
        {"Type network to confirm": "Network"},
        "Roll back to serial 1",
        "Nothing was changed",
    ),
    ("ours/specs/network/settings/", {"Terraform version": "new"}, "Save settings", "Write 1.9.8"),
    (
        "ours/specs/network/variables/delay",
        {"Value number": "long"},
        "Save as new revision",
        "'long' is not a number",
    ),
    (
        "ours/specs/network/add-variable",
        {"Name": "1x", "Value": "long"},
        "Save as new revision",
        "'1x' is not a name",
    ),
    (
        "ours/identities/connect/?provider=aws",
        {"Display name": "x", "Role ARN": "slipway", "Region": "eu-central-1"},
        "Continue to setup",
        "the ARN of a role",
    ),
    ("ours/identities/production/change/", {"Display name": " "}, "Save", "1 to 100 printable characters"),
    (
        "ours/identities/production/delete",
        {"Type network to confirm": "x"},
        "Delete identity",
        "Nothing was changed",
    ),
    (
        "ours/specs/new/?source=inline",
        {"Name": "New", "Content of main.tf": "= ="},
        "Create only",
        "main.tf, line 1: this is not valid HCL",
    ),
    (
        "ours/specs/new/?source=git",
        {"Name": "New", "Address": "https://169.254.169.254/x.git"},
        "Create only",
        "169.254.169.254 is an internal address",
    ),
    (
        "account/",
        {
            "Current password": "not it",
            "New password": "a long pass phrase",
            "Confirm new password": "a long pass phrase",
        },
        "Change password",
        "That is not your current password. Nothing was changed.",
    ),
]


def test_a_refusal_stands_beside_the_button_and_says_what_to_do(
    browser: Browser, server: Server, sessions: dict[str, Cookie]
) -> None:
    context = open_context(browser, sessions["ours"])
    witness, page = Witness(context), context.new_page()
    for path, fields, button, words in REFUSED:
        page.goto(f"{server.url}/{path}")
        main = page.locator("main")
        for label, text in fields.items():
            main.get_by_label(label, exact=True).first.fill(text)
        main.get_by_role("button", name=button).first.click()
        # Beside the button: what a form says as it is filled in stands at its fields.
        expect(main.locator("[role=alert]:not(#fields *)").filter(has_text=words)).to_be_visible()
        witness.forgive("400 (Bad Request)")
    assert witness.complaints == []
    context.close()


def test_a_file_that_is_no_state_is_refused_and_one_that_is_becomes_a_version(
    browser: Browser, server: Server, sessions: dict[str, Cookie]
) -> None:
    context = open_context(browser, sessions["young"])
    witness, page = Witness(context), context.new_page()
    page.goto(f"{server.url}/young/specs/network/state/")
    page.get_by_label("State file", exact=True).set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"not a state"}
    )
    page.get_by_role("button", name="Upload new version").click()
    expect(page.get_by_role("alert").filter(has_text="is not Terraform state")).to_be_visible()
    witness.forgive("400 (Bad Request)")
    page.get_by_label("State file", exact=True).set_input_files(
        {"name": "terraform.tfstate", "mimeType": "application/json", "buffer": state("one", serial=7)}
    )
    page.get_by_role("button", name="Upload new version").click()
    expect(page.get_by_role("heading", name="Serial 7 of network")).to_be_visible()
    assert witness.complaints == []
    context.close()


def test_a_stale_plan_says_what_changed_and_is_planned_again_and_only_once(
    browser: Browser, server: Server, sessions: dict[str, Cookie], stale: Sample
) -> None:
    context = open_context(browser, sessions["ours"])
    witness, page = Witness(context), context.new_page()
    behind = context.new_page()
    # This one hears of nothing, so that it still offers what is no longer possible.
    behind.route_web_socket("**/ws/**", lambda route: None)
    behind.goto(f"{server.url}/ours/specs/network/")
    page.goto(f"{server.url}/ours/specs/network/plans/{stale.plan.number}/")
    reads(page, 'variable "name" changed', "Plan again")
    expect(page.get_by_role("button", name=re.compile("^Apply"))).to_have_count(0)
    page.get_by_role("button", name="Plan again").click()
    expect(page.get_by_role("heading", name=re.compile("^Plan #"))).to_be_visible()
    reads(page, "Waiting:", "Cancel")
    behind.get_by_role("button", name="Plan", exact=True).click()
    refusal = behind.get_by_role("alert").filter(has_text="View that job")
    expect(refusal).to_be_visible()
    witness.forgive("409 (Conflict)")
    refusal.get_by_role("link", name="View that job").click()
    expect(behind).to_have_url(page.url)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#job-header")).to_have_attribute("data-status", "CANCELLED")
    page.get_by_role("button", name="Retry").click()
    expect(page.locator("#job-header")).to_have_attribute("data-status", "QUEUED")
    reads(page, "retry of", "Cancel")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#job-header")).to_have_attribute("data-status", "CANCELLED")
    assert witness.complaints == []
    context.close()


def test_a_runner_that_is_refused_shows_why_where_it_is_waited_for(
    browser: Browser, server: Server, sessions: dict[str, Cookie], background: Background
) -> None:
    context = open_context(browser, sessions["ours"])
    witness, page = Witness(context), context.new_page()
    page.goto(f"{server.url}/ours/runners/add/")
    page.get_by_role("button", name="Create registration token").click()
    token = re.search(r"slt_\S+", page.locator("[data-way=shell] pre").inner_text())
    assert token
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    body = {"token": token.group(), "name": "network", "facts": asdict(facts())}
    answer = Console(background).anybody().post("/api/runners/register", json=body)
    assert answer.status_code == 409, "there is one of that name"
    expect(page.get_by_role("alert").filter(has_text="Registration refused:")).to_contain_text("network")
    assert witness.complaints == []
    context.close()


def test_a_viewer_is_told_what_the_role_does_not_allow(
    browser: Browser, server: Server, sessions: dict[str, Cookie]
) -> None:
    context = open_context(browser, sessions["viewer"])
    page = context.new_page()
    for path in ("audit/", "runners/add/", "specs/new/", "specs/network/destroy", "identities/connect/"):
        answer = page.goto(f"{server.url}/ours/{path}")
        assert answer is not None
        assert answer.status == 403
        reads(page, "yours is viewer. Ask an admin of the organization.", "Back to home")
    context.close()


def test_a_failure_of_ours_has_an_id_that_is_in_the_log(
    browser: Browser, server: Server, sessions: dict[str, Cookie]
) -> None:
    context = open_context(browser, sessions["viewer"])
    page = context.new_page()
    with psycopg.connect(database_url(), autocommit=True) as other:
        other.execute("ALTER TABLE accounts_savedfilter RENAME TO accounts_gone")
        try:
            page.goto(f"{server.url}/ours/jobs/")
            reads(page, "Error ID", "Back to home")
        finally:
            other.execute("ALTER TABLE accounts_gone RENAME TO accounts_savedfilter")
    error_id = page.locator("main code").inner_text()
    assert error_id in server.log
    assert "accounts_savedfilter" not in page.content(), "what is inside is for the log"
    context.close()


# What no other journey does


def test_small_things_are_done_and_undone(
    browser: Browser, server: Server, sessions: dict[str, Cookie]
) -> None:
    context = open_context(browser, sessions["ours"])
    witness, page = Witness(context), context.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    drains_and_takes_jobs_again(page, f"{server.url}/ours/settings/")
    keeps_a_filter_and_lets_it_go(page, f"{server.url}/ours/jobs/?type=PLAN")
    withdraws_an_invitation(page, f"{server.url}/ours/settings/members/")
    removes_a_blueprint(page, f"{server.url}/ours/blueprints/")
    drains_a_runner(page, f"{server.url}/ours/runners/")
    revokes_a_runner(page, f"{server.url}/ours/runners/")
    deletes_an_identity(page, f"{server.url}/ours/identities/production/change/")
    assert witness.complaints == []
    changes_the_password_and_ends_every_session(page, f"{server.url}/account/")
    context.close()


def drains_and_takes_jobs_again(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_label("Name").fill("Ours and more")
    page.get_by_role("button", name="Save name").click()
    page.get_by_role("button", name="Pause new jobs in Ours and more").click()
    reads(page, "Draining", "Resume")
    page.get_by_role("button", name="Resume").click()
    reads(page, "Accepting jobs", "Pause new jobs in Ours and more")


def keeps_a_filter_and_lets_it_go(page: Page, address: str) -> None:
    page.goto(address)
    kept = page.get_by_role("navigation", name="Saved filters")
    page.get_by_text("Save filter…").click()
    page.get_by_label("Filter name").fill("only plans")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(kept.get_by_role("link", name="only plans")).to_be_visible()
    kept.get_by_role("button", name=re.compile("only plans")).click()
    expect(kept.get_by_role("link", name="only plans")).to_have_count(0)


def withdraws_an_invitation(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="Withdraw the invitation for network").click()
    reads(page, "None.", "Create invite link")


def removes_a_blueprint(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("button", name="Remove")).to_have_count(0)


def drains_a_runner(page: Page, address: str) -> None:
    page.goto(address)
    row = page.get_by_role("row").filter(has=page.get_by_role("cell", name="network", exact=True))
    row.get_by_role("button", name="Drain network", exact=True).click()
    expect(row).to_contain_text("draining")
    row.get_by_role("button", name="Resume network", exact=True).click()
    expect(row.get_by_role("button", name="Drain network", exact=True)).to_be_visible()
    expect(row).not_to_contain_text("draining")


def revokes_a_runner(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="Revoke network", exact=True).click()
    expect(page.get_by_role("button", name="Revoke network", exact=True)).to_have_count(0)
    row = page.get_by_role("row").filter(has=page.get_by_role("cell", name="network", exact=True))
    expect(row).to_contain_text("REVOKED")


def deletes_an_identity(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_label("Type network to confirm").fill("network")
    page.get_by_role("dialog").get_by_role("button", name="Delete identity").click()
    reads(page, "No cloud account connected", "Connect an account")


def changes_the_password_and_ends_every_session(page: Page, address: str) -> None:
    page.goto(address)
    for label, text in (
        ("Current password", PASSWORD),
        ("New password", f"{PASSWORD}, new"),
        ("Confirm new password", f"{PASSWORD}, new"),
    ):
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Change password").click()
    reads(page, "Password changed.", "")
    page.get_by_role("button", name="Sign out everywhere").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


# No answer


def test_a_button_says_when_the_console_does_not_answer(
    browser: Browser, server: Server, sessions: dict[str, Cookie], young: Young
) -> None:
    """The last one of this file: the console is killed."""
    context = open_context(browser, sessions["young"])
    page, listing = context.new_page(), context.new_page()
    page.goto(f"{server.url}/young/jobs/{young.silent_job}/")
    listing.goto(f"{server.url}/young/specs/")
    for tab in (page, listing):
        expect(tab.get_by_text("live", exact=True)).to_be_visible()
    server.kill()
    page.get_by_role("button", name="Retry").click()
    unreached = "Cannot reach the console. Nothing was sent."
    expect(page.locator("#job-refusal").get_by_role("alert")).to_contain_text(unreached)
    expect(page.get_by_text("Connection lost.")).to_be_visible()
    listing.get_by_role("link", name="hasty", exact=True).click()
    expect(listing.locator("main").get_by_role("alert")).to_contain_text(unreached)
    server.start()
    expect(page.get_by_text("Reconnected.")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Retry").click()
    expect(page.locator("#job-header")).to_have_attribute("data-status", "QUEUED")
    listing.get_by_role("link", name="hasty", exact=True).click()
    expect(listing.get_by_role("heading", name="hasty", exact=True)).to_be_visible()
    expect(listing.get_by_text(unreached)).to_have_count(0)
    context.close()
