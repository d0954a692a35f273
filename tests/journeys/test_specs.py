"""Making Specs and editing them, by a person with a browser: every source, variables, history, settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from specs.document import load_blueprint
from tests.git_host import Repository, git_repository
from tests.journeys.browser import NARROW, Witness
from tests.journeys.product import Product

PLAN_MS = 60_000

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def product_environment() -> dict[str, str]:
    return {"SLIPWAY_GIT_ALLOWED_HOSTS": "127.0.0.1"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repository]:
    with git_repository(tmp_path_factory.mktemp("git") / "repository") as served:
        yield served


def test_from_a_blueprint_to_its_outputs(context: BrowserContext, page: Page, product: Product) -> None:
    witness = Witness(context)
    page.goto(f"{product.url}/demo/specs/")
    page.get_by_role("link", name="New Spec").click()
    page.get_by_role("link", name=re.compile("^Demo")).click()
    page.get_by_label("Name", exact=True).fill("Harbour")
    field(page, "zones").fill('["a"]')
    field(page, "services").fill('{"checkout": 1}')
    field(page, "delay").fill("soon")
    page.get_by_role("button", name="Create and plan").click()
    expect(page.get_by_role("alert").filter(has_text="'soon' is not a number")).to_be_visible()
    expect(field(page, "delay")).to_be_focused()
    expect(field(page, "delay")).to_have_attribute("aria-invalid", "true")
    witness.forgive("400 (Bad Request)")
    field(page, "delay").fill("0")
    page.get_by_role("button", name="Create and plan").click()
    succeeds(page, "Plan")
    page.get_by_role("link", name=re.compile("^Review plan")).click()
    page.get_by_role("button", name=re.compile("^Apply")).click()
    succeeds(page, "Apply")
    page.get_by_role("navigation", name="Breadcrumbs").get_by_role("link", name="Harbour").click()
    components = page.get_by_role("region", name="Components")
    expect(components).to_contain_text("https://harbour.cluster.example")
    expect(page.get_by_text("(sensitive)")).to_be_visible()
    page.get_by_role("button", name="Reveal database_password").click()
    revealed = page.get_by_role("dialog")
    expect(revealed.locator(".value")).to_have_text(re.compile("^[0-9a-f]{64}$"))
    revealed.get_by_role("button", name="Hide").click()
    expect(page.get_by_text(re.compile("^[0-9a-f]{64}$"))).to_have_count(0)
    assert witness.complaints == []


def test_files_are_written_in_the_browser_and_a_mistake_is_shown_where_it_is(
    context: BrowserContext, page: Page, product: Product
) -> None:
    witness = Witness(context)
    page.goto(f"{product.url}/demo/specs/new/?source=inline")
    expect(field(page, "name")).to_have_value("harbour")
    page.get_by_label("Name", exact=True).fill("Written here")
    content = page.get_by_label("Content of main.tf")
    content.fill('variable "size" {\n  type = = number\n}\n')
    content.blur()
    expect(page.locator("#fields")).to_contain_text("main.tf, line 2: this is not valid HCL")
    page.get_by_role("button", name="Create only").click()
    expect(content).to_be_focused()
    assert content.evaluate("it => it.value.slice(it.selectionStart, it.selectionEnd)") == "  type = = number"
    expect(page.locator(".gutter .bad")).to_have_text("2")
    witness.forgive("400 (Bad Request)")
    content.fill('variable "size" {\n  type = number\n}\n')
    content.press("Control+End")
    content.press("Tab")
    assert content.input_value().endswith("}\n  ")
    content.blur()
    expect(field(page, "size")).to_be_visible()
    page.get_by_role("button", name="Add a file").click()
    page.get_by_label("File name").last.fill("outputs.tf")
    page.get_by_label("Content of outputs.tf").fill('output "size" {\n  value = var.size\n}\n')
    page.reload()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Written here")
    expect(page.get_by_label("File name").last).to_have_value("outputs.tf")
    expect(field(page, "size")).to_be_visible()
    page.get_by_role("button", name="Create and plan").click()
    expect(page.get_by_role("alert").filter(has_text="'size' (number) has no value")).to_be_visible()
    witness.forgive("400 (Bad Request)")
    field(page, "size").fill("3")
    page.get_by_role("button", name="Create only").click()
    expect(page.get_by_role("heading", name="Written here", exact=True)).to_be_visible()
    expect(page.get_by_text("Never planned")).to_be_visible()
    assert witness.complaints == []


def test_a_git_repository_is_read_and_planned(
    context: BrowserContext, page: Page, product: Product, repository: Repository
) -> None:
    commit = repository.commit({f"demo/{name}": text for name, text in load_blueprint("demo").files.items()})
    witness = Witness(context)
    page.goto(f"{product.url}/demo/specs/new/?source=git")
    page.get_by_label("Name", exact=True).fill("From Git")
    page.get_by_label("Address").fill("https://169.254.169.254/x.git")
    page.get_by_role("button", name="Load variables").click()
    expect(page.locator("#fields")).to_contain_text("169.254.169.254 is an internal address")
    witness.forgive("400 (Bad Request)")
    page.get_by_label("Address").fill(repository.url)
    page.get_by_label("Folder").fill("demo")
    page.get_by_role("button", name="Load variables").click()
    expect(page.locator("#fields")).to_contain_text(commit[:12])
    field(page, "delay").fill("0")
    page.get_by_role("button", name="Create and plan").click()
    succeeds(page, "Plan")
    page.get_by_role("navigation", name="Breadcrumbs").get_by_role("link", name="From Git").click()
    page.get_by_role("navigation", name="From Git").get_by_role("link", name="Source", exact=True).click()
    expect(page.get_by_text("pinned to")).to_contain_text(commit[:12])
    assert witness.complaints == []


def test_variables_history_and_settings(context: BrowserContext, page: Page, product: Product) -> None:
    witness = Witness(context)
    page.goto(f"{product.url}/demo/variable-sets/")
    expect(page.get_by_text("No variable sets yet")).to_be_visible()
    page.get_by_label("New variable set name").fill("Everywhere")
    page.get_by_role("button", name="Create variable set").click()
    page.get_by_role("button", name="Add…").click()
    page.get_by_role("dialog").get_by_label("Name").fill("name")
    page.get_by_role("dialog").get_by_label("Value").fill("quay")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name="name Terraform")).to_contain_text('"quay"')
    page.get_by_label("demo", exact=True).check()
    with page.expect_response(re.compile("/variable-sets/")) as saved:
        page.get_by_role("button", name="Save").click()
    assert saved.value.ok
    tabs = page.get_by_role("navigation", name="demo", exact=True)
    page.goto(f"{product.url}/demo/specs/demo/")
    tabs.get_by_role("link", name="Variables").click()
    row = page.get_by_role("row", name=re.compile("^name"))
    expect(row).to_contain_text("this Spec")
    expect(row).to_contain_text("overrides default, set Everywhere")
    page.get_by_role("button", name="Remove name").click()
    expect(row).to_contain_text("set Everywhere")
    page.get_by_role("button", name="Set name").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Value").fill("never-shown-again")
    dialog.get_by_label("Sensitive").check()
    dialog.get_by_role("button", name="Save as new revision").click()
    expect(row).to_contain_text("(sensitive)")
    page.get_by_role("button", name="Change delay").click()
    dialog.get_by_label("Value").fill("long")
    dialog.get_by_role("button", name="Save as new revision").click()
    expect(dialog.get_by_role("alert")).to_contain_text("is not a number")
    witness.forgive("400 (Bad Request)")
    dialog.get_by_label("Value").fill("0.5")
    dialog.get_by_role("button", name="Save as new revision").click()
    expect(page.get_by_role("row", name=re.compile("^delay"))).to_contain_text("0.5")
    tabs.get_by_role("link", name="Revisions").click()
    page.get_by_label("Compare from revision 1").check()
    page.get_by_role("button", name="Compare selected").click()
    compared = page.get_by_role("region", name="Variables")
    expect(compared.get_by_role("row", name="delay")).to_contain_text("0.5")
    expect(compared).to_contain_text("(sensitive, changed)")
    assert "never-shown-again" not in page.content()
    page.get_by_role("navigation", name="Breadcrumbs").get_by_role("link", name="Revisions").click()
    page.get_by_role("button", name="Restore revision 1").click()
    expect(page.get_by_role("row", name="Restored revision 1")).to_contain_text("current")
    tabs.get_by_role("link", name="Settings").click()
    page.get_by_label("Environment").fill("staging")
    page.get_by_label("Labels").fill("team = harbour")
    page.get_by_label("Terraform version").fill("the newest")
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_role("alert").filter(has_text="is not a version")).to_be_visible()
    expect(page.get_by_label("Terraform version")).to_be_focused()
    witness.forgive("400 (Bad Request)")
    page.get_by_label("Terraform version").fill(">= 1.0")
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_label("Environment")).to_have_value("staging")
    assert witness.complaints == []


def test_files_are_edited_and_stand_side_by_side(
    context: BrowserContext, page: Page, product: Product
) -> None:
    witness = Witness(context)
    page.goto(f"{product.url}/demo/specs/demo/source/?kind=inline")
    expect(page.get_by_text("the Spec no longer follows the blueprint")).to_be_visible()
    content = page.get_by_label("Content of outputs.tf")
    content.fill(content.input_value().replace("would answer", "will answer"))
    page.get_by_label("Change description").fill("Sound sure")
    page.get_by_role("button", name=re.compile("^Save as revision")).click()
    expect(page.get_by_text("Sound sure")).to_be_visible()
    page.get_by_role("navigation", name="demo", exact=True).get_by_role("link", name="Revisions").click()
    page.get_by_role("button", name="Compare selected").click()
    changed_row = page.get_by_role("region", name="outputs.tf").locator("tr.changed").first
    expect(changed_row.locator(".left")).to_contain_text("would answer")
    expect(changed_row.locator(".right")).to_contain_text("will answer")
    assert witness.complaints == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_of_specs_has_to_be_scrolled_sideways(
    browser: Browser, product: Product, session: Any, theme: Any
) -> None:
    context = browser.new_context(viewport=NARROW, storage_state=session, color_scheme=theme)
    witness, page = Witness(context), context.new_page()
    for address in (
        "specs/new/", "specs/new/?source=blueprint&name=demo", "specs/new/?source=inline",
        "specs/new/?source=git", "specs/demo/source/", "specs/demo/source/?kind=inline",
        "specs/demo/variables/", "specs/demo/variables/delay", "specs/demo/revisions/",
        "specs/demo/revisions/compare?from=1&to=1", "specs/demo/settings/", "variable-sets/", "blueprints/",
    ):  # fmt: skip
        page.goto(f"{product.url}/demo/{address}")
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"], address
    assert witness.complaints == []
    context.close()


def field(page: Page, variable: str) -> Any:
    return page.locator(f'[id="var-{variable}"]')


def succeeds(page: Page, type: str) -> None:
    expect(page.get_by_role("heading", name=re.compile(f"^{type} #"))).to_be_visible()
    expect(page.locator("#job-header")).to_have_attribute("data-status", "SUCCESS", timeout=PLAN_MS)
