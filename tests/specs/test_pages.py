"""The pages of Specs as forms and answers: what is made with them, and what they refuse and say."""

from __future__ import annotations

import html
import re
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile

from console.jobs.models import Job
from specs.models import OwnBlueprint, Revision, Spec, VariableSet
from tests.git_host import Repository
from tests.page_source import source_of
from tests.people import Tenant
from tests.specs.editing import FILES, Browser
from tests.specs.test_archives import HOSTILE, zip_of
from tests.specs.test_refusals import BAD_SOURCES

TYPED_FILES = {"file-name": list(FILES), "file-text": list(FILES.values())}


def sent_to(answer: Any) -> str:
    """Return the address that an accepted form leads to."""
    assert answer.status_code == 200, source_of(answer)
    return str(answer["HX-Location"])


def create_spec(browser: Browser, **fields: Any) -> Spec:
    form = {"source": "inline", "name": "Shop", "then": "stay", **TYPED_FILES, **fields}
    assert '"/ours/specs/shop/"' in sent_to(browser.post("specs/new/create", form))
    return Spec.objects.get(slug="shop")


def test_each_way_to_a_new_spec_has_its_page(ours: Tenant) -> None:
    browser = Browser(ours, ours.operator)
    choice = browser.reads("specs/new/")
    for words in ("Demo", "AWS platform", "Git repository", "Files"):
        assert words in choice
    demo = browser.reads("specs/new/", source="blueprint", name="demo")
    assert 'name="var-delay"' in demo
    assert "The approximate seconds that each resource takes to create." in demo
    aws = browser.reads("specs/new/", source="blueprint", name="aws-platform")
    for words in ("<legend>Network</legend>", "<option>EXTENDED</option>", 'name="var-vpc_cidr"'):
        assert words in aws
    assert 'name="url"' in browser.reads("specs/new/", source="git")
    assert 'name="file-text"' in browser.reads("specs/new/", source="inline")
    assert browser.get("specs/new/", source="blueprint", name="none").status_code == 404
    assert Browser(ours, ours.viewer).get("specs/new/").status_code == 403


def test_a_form_of_typed_variables_becomes_a_spec_and_its_first_plan(ours: Tenant) -> None:
    form = {
        "source": "blueprint", "blueprint": "demo", "name": "Harbour", "environment": "staging",
        "region": "eu-central-1", "then": "plan", "var-name": "harbour", "var-zones": '["a", "z"]',
        "var-delay": "0.5", "var-services": "",
    }  # fmt: skip
    answer = Browser(ours, ours.operator).post("specs/new/create", form)
    assert "/ours/jobs/1/" in sent_to(answer)
    document = Revision.objects.get(spec__slug="harbour").document
    assert document["variables"] == {"zones": ["a", "z"], "delay": 0.5}
    assert Job.objects.get().config_snapshot["variables"] == document["variables"]
    assert Job.objects.get().config_snapshot["region"] == "eu-central-1"
    assert (Spec.objects.get().environment, Spec.objects.get().region) == ("staging", "eu-central-1")


def test_files_become_a_spec_and_what_they_declare_becomes_fields(ours: Tenant) -> None:
    browser = Browser(ours, ours.operator)
    fields = source_of(browser.post("specs/new/variables", {"source": "inline", **TYPED_FILES}))
    assert 'name="var-size"' in fields
    assert "How large it is." in fields
    assert 'name="secret-password"' in fields
    typed = {"var-size": "77", "secret-password": "typed-secret"}
    again = source_of(browser.post("specs/new/variables", {"source": "inline", **TYPED_FILES, **typed}))
    assert 'name="var-size" class="mono" value="77"' in again
    broken = {"source": "inline", "file-name": ["a.tf"], "file-text": ["locals {"], **typed}
    page_source = source_of(browser.post("specs/new/variables", broken))
    assert '<input type="hidden" name="var-size" value="77">' in page_source
    assert "typed-secret" not in again + page_source
    spec = create_spec(browser, **{"var-size": "5", "var-zones": '["a"]', "secret-password": "a-long-secret"})
    document = spec.revisions.get().document
    assert document["files"] == FILES
    assert document["variables"] == {"size": 5}
    assert list(document["secrets"]["variables"]) == ["password"]


def test_an_archive_counts_instead_of_the_fields(ours: Tenant) -> None:
    archive = SimpleUploadedFile("project.zip", zip_of({f"top/{name}": text for name, text in FILES.items()}))
    spec = create_spec(
        Browser(ours, ours.operator), archive=archive, **{"file-name": ["x.tf"], "file-text": ["broken {"]}
    )
    assert spec.revisions.get().document["files"] == FILES


def test_every_bad_source_is_refused_on_the_page_with_field_and_line(ours: Tenant) -> None:
    browser = Browser(ours, ours.operator)
    spec = create_spec(browser)
    for why, (source, field, words) in BAD_SOURCES.items():
        if not isinstance(source, dict) or source.get("kind") not in ("inline", "git") or "archive" in source:
            continue
        form: dict[str, Any] = {"source": source["kind"], "name": "Other", "url": source.get("url", "")}
        files = source.get("files", {})
        if not all(isinstance(text, str) for text in files.values()):
            continue
        form |= {"file-name": list(files), "file-text": list(files.values())}
        for answer in (
            browser.post("specs/new/create", form),
            browser.post("specs/new/variables", form),
            browser.post("specs/shop/source/", form),
        ):
            page = source_of(answer)
            assert answer.status_code == 400, why
            assert f'data-field="{field}"' in page, why
            assert words.replace("'", "&#x27;") in page, why
    assert spec.revisions.count() == Spec.objects.count() == 1
    broken = {"source": "inline", "file-name": ["a.tf"], "file-text": ["locals {\n  a = = 1\n}"]}
    page = source_of(browser.post("specs/shop/source/", broken))
    assert 'data-file="a.tf" data-line="2"' in page
    assert "a = = 1</pre>" in page


def test_bombs_and_bad_values_are_refused_on_the_page(ours: Tenant) -> None:
    browser = Browser(ours, ours.operator)
    bomb = SimpleUploadedFile("bomb.zip", HOSTILE["a zip bomb"][0])
    answer = browser.post("specs/new/create", {"source": "inline", "name": "x", "archive": bomb})
    assert (answer.status_code, b'data-field="archive"' in answer.content) == (400, True)
    form = {"source": "inline", "name": "Shop", **TYPED_FILES}
    answer = browser.post("specs/new/create", {**form, "region": "Frankfurt am Main"})
    assert (answer.status_code, b'data-field="region"' in answer.content) == (400, True)
    for name, typed, words in (
        ("size", "big", "is not a number"),
        ("zones", "[1,", "look at line 1"),
        ("zones", '{"a": 1}', "expected list(string), got map"),
    ):
        answer = browser.post("specs/new/create", {**form, f"var-{name}": typed})
        assert (answer.status_code, words in source_of(answer)) == (400, True), typed
        assert f'data-field="variables.{name}"' in source_of(answer)
    twice = {"source": "inline", "name": "x", "file-name": ["a.tf", "a.tf"], "file-text": ["", ""]}
    assert b"two files named" in browser.post("specs/new/create", twice).content
    lacking = {**form, "then": "plan", "file-name": ["a.tf"], "file-text": ['variable "name" {}\n']}
    answer = browser.post("specs/new/create", lacking)
    assert (answer.status_code, b"has no value and no default" in answer.content) == (400, True)
    assert Spec.objects.count() == 0


def test_what_the_other_forms_refuse(ours: Tenant, repository: Repository) -> None:
    repository.commit({"main.tf": "locals {\n", "docs/readme.md": "x"})
    browser = Browser(ours, ours.operator)
    spec = create_spec(browser)

    def assert_refused(answer: Any, field: str, words: str) -> None:
        page = html.unescape(source_of(answer))
        assert answer.status_code in (400, 404), page
        assert f'data-field="{field}"' in page
        assert words in page

    for why, (content, words) in HOSTILE.items():
        form = {"source": "inline", "based_on": "1", "archive": SimpleUploadedFile("a.zip", content)}
        answer = browser.post("specs/shop/source/", form)
        assert answer.status_code in (400, 413), why
        assert re.search(words, html.unescape(source_of(answer))), why
    for field, words, fields in (
        ("source.ref", "no branch, tag or commit", {"ref": "no-such-branch"}),
        ("source.path", "There are no files below", {"path": "no/such/folder"}),
        ("source.path", "without `..`", {"path": "../x"}),
        ("source.ref", "is not a branch", {"ref": "--upload-pack=id"}),
        ("source.files", "main.tf, line 1", {}),
    ):
        form = {"source": "git", "based_on": "1", "url": repository.url, "ref": "main", "path": "", **fields}
        assert_refused(browser.post("specs/shop/source/", form), field, words)
    form = {"source": "blueprint", "based_on": "1", "blueprint": "../demo"}
    assert_refused(browser.post("specs/shop/source/", form), "", "no blueprint named")
    for sensitive in ({}, {"sensitive": "on"}):
        unknown = {"category": "variables", "name": "sise", "value": "3", **sensitive}
        assert_refused(
            browser.post("specs/shop/add-variable", unknown), "variables.sise", "has no variable 'sise'"
        )
        wrong = {"category": "variables", "value": '["a", {}]', **sensitive}
        answer = browser.post("specs/shop/variables/zones", wrong)
        assert_refused(answer, "variables.zones", "expected string, got map")
    for name in ("TF_LOG", "PATH", "LD_PRELOAD"):
        answer = browser.post("specs/shop/add-variable", category="environment", name=name, value="x")
        assert_refused(answer, "name", "is used by the runner itself")
    past = {
        "name": "Shop", "environment": "development", "required_approvals": "1", "plan_max_age_hours": "1",
        "expires_at": "2020-01-01T00:00",
    }  # fmt: skip
    assert_refused(browser.post("specs/shop/settings/", past), "expires_at", "is in the past")
    assert spec.revisions.count() == Spec.objects.count() == 1


def test_variables_are_set_and_removed_with_their_forms(ours: Tenant) -> None:
    browser = Browser(ours, ours.operator)
    spec = create_spec(browser)
    page = browser.reads("specs/shop/variables/")
    assert "default" in page
    assert "(sensitive)" in page
    assert 'value="3"' in browser.reads("specs/shop/variables/size", category="variables")
    sent_to(browser.post("specs/shop/variables/size", category="variables", value="8"))
    sent_to(browser.post("specs/shop/add-variable", category="environment", name="REGION", value="eu"))
    sent_to(browser.post("specs/shop/variables/zones", category="variables", value='["q"]', sensitive="on"))
    document = spec.revisions.latest("number").document
    assert (document["variables"], document["environment"]) == ({"size": 8}, {"REGION": "eu"})
    assert list(document["secrets"]["variables"]) == ["zones"]
    assert "overrides default" in browser.reads("specs/shop/variables/")
    sent_to(browser.post("specs/shop/variables/size/remove", category="variables"))
    assert spec.revisions.latest("number").document["variables"] == {}
    bad = browser.post("specs/shop/variables/size", category="variables", value="big")
    assert (bad.status_code, b"is not a number" in bad.content) == (400, True)


def test_two_revisions_stand_side_by_side_and_one_is_restored(ours: Tenant) -> None:
    browser = Browser(ours, ours.operator)
    spec = create_spec(browser, **{"var-password": "first-secret-value"})
    form = {
        "file-name": list(FILES),
        "file-text": [FILES["main.tf"].replace("size", "zones"), FILES["variables.tf"]],
    }
    sent_to(
        browser.post("specs/shop/source/", {"source": "inline", "message": "Zones", "based_on": "1", **form})
    )
    sent_to(browser.post("specs/shop/variables/password", category="variables", value="second-secret-value"))
    assert "Zones" in browser.reads("specs/shop/revisions/")
    page = browser.reads("specs/shop/revisions/compare", **{"from": 1, "to": 3})
    indented = browser.get("specs/shop/revisions/compare", **{"from": 1, "to": 3}).content.decode()
    assert '<td class="side left">  input = var.size</td>' in indented
    assert '<td class="side right">  input = var.zones</td>' in indented
    assert "(sensitive, changed)" in page
    assert "secret-value" not in page
    late = browser.post("specs/shop/source/", {"source": "inline", "based_on": "1", **TYPED_FILES})
    assert (late.status_code, b"in the meantime" in late.content) == (409, True)
    sent_to(browser.post("specs/shop/revisions/1/restore"))
    assert spec.revisions.get(number=4).document == spec.revisions.get(number=1).document


def test_settings_are_saved_and_bad_ones_refused(ours: Tenant) -> None:
    browser = Browser(ours, ours.operator)
    spec = create_spec(browser)
    pool = ours.new_pool("gpu")
    form = {
        "name": "Shop", "environment": "production", "description": "Sells.", "labels": "team = web\ntier=1",
        "region": "eu-central-1", "terraform_version": "~> 1.9", "required_approvals": "2",
        "plan_max_age_hours": "4", "guard-share": "12.5", "guard-types": "aws_db_*, aws_s3_bucket",
        "expires_at": "2027-01-31T12:00", "protected": "on", "pool": str(pool.pk),
    }  # fmt: skip
    sent_to(browser.post("specs/shop/settings/", form))
    spec.refresh_from_db()
    assert (spec.labels, spec.pool, spec.protected) == ({"team": "web", "tier": "1"}, pool, True)
    assert spec.destroy_guard == {"share": 0.125, "types": ["aws_db_*", "aws_s3_bucket"]}
    assert spec.expires_at is not None
    page = browser.reads("specs/shop/settings/")
    for words in ("team = web", 'value="12.5"', "2027-01-31T12:00", "an admin can change"):
        assert words in page
    unprotected = {name: value for name, value in form.items() if name != "protected"}
    assert browser.post("specs/shop/settings/", unprotected).status_code == 403
    sent_to(Browser(ours, ours.admin).post("specs/shop/settings/", unprotected))
    for name, value in (
        ("plan_max_age_hours", "soon"),
        ("terraform_version", "new"),
        ("labels", "x"),
        ("pool", "x"),
    ):
        assert_refused = browser.post("specs/shop/settings/", {**unprotected, name: value})
        assert (assert_refused.status_code, f'data-field="{name}"' in source_of(assert_refused)) == (
            400,
            True,
        ), name


def test_variable_sets_have_their_pages(ours: Tenant) -> None:
    create_spec(Browser(ours, ours.operator))
    admin = Browser(ours, ours.admin)
    sent_to(admin.post("variable-sets/", name="Everywhere"))
    variable_set = VariableSet.objects.get()
    path = f"variable-sets/{variable_set.pk}/"
    sent_to(admin.post(path + "variable", name="size", category="variables", value="21"))
    sent_to(
        admin.post(
            path + "variable", name="TOKEN", category="environment", value="s3cr3t-token", sensitive="on"
        )
    )
    sent_to(admin.post(path, reach="some", specs=["shop"], priority="3", description="For the shop"))
    page = admin.reads(path)
    assert "21" in page
    assert "s3cr3t-token" not in page
    assert "For the shop" in admin.reads("variable-sets/")
    assert "set Everywhere" in admin.reads("specs/shop/variables/")
    assert admin.post(path, reach="some", priority="x").status_code == 400
    sent_to(admin.post(path + "variable/remove", name="size", category="variables"))
    assert "set Everywhere" in admin.reads("specs/shop/variables/")
    operator = Browser(ours, ours.operator)
    assert operator.get(path).status_code == 200
    assert operator.post(path + "delete").status_code == 403
    sent_to(admin.post(path + "delete"))
    assert VariableSet.objects.count() == 0


def test_blueprints_of_ones_own_have_their_page(ours: Tenant, repository: Repository) -> None:
    repository.commit({f"network/{name}": text for name, text in FILES.items()})
    admin = Browser(ours, ours.admin)
    form = {"name": "network", "url": repository.url, "ref": "main", "path": "network"}
    sent_to(admin.post("blueprints/", form))
    page = admin.reads("blueprints/")
    assert repository.url in page
    assert 'name="var-size"' in admin.reads("specs/new/", source="blueprint", name="network")
    assert admin.post("blueprints/", {**form, "url": "file:///etc", "name": "x"}).status_code == 400
    assert Browser(ours, ours.operator).post("blueprints/", form).status_code == 403
    sent_to(admin.post("blueprints/network/refresh"))
    sent_to(admin.post("blueprints/network/remove"))
    assert OwnBlueprint.objects.count() == 0


def test_forms_answer_without_scripts(ours: Tenant) -> None:
    plain = Browser(ours, ours.operator, scripts=False)
    form = {"source": "inline", "name": "Shop", "then": "stay", **TYPED_FILES}
    assert plain.post("specs/new/create", form).status_code == 302
    assert "<h1>" in plain.reads("specs/shop/variables/size", category="variables")
    assert_refused = plain.post("specs/new/create", form)
    assert (assert_refused.status_code, b"already has a Spec" in assert_refused.content) == (409, True)


def test_a_viewer_sees_the_pages_and_no_way_to_change_anything(ours: Tenant) -> None:
    create_spec(Browser(ours, ours.operator))
    viewer = Browser(ours, ours.viewer)
    for page in ("source/", "variables/", "revisions/", "settings/", ""):
        page_source = viewer.reads(f"specs/shop/{page}")
        assert 'type="submit" data-key-plan' not in page_source
        assert "Save" not in page_source, page
    assert viewer.post("specs/shop/settings/", name="x").status_code in (400, 403)
    assert viewer.post("specs/shop/variables/size", value="1").status_code == 403
    assert viewer.get("specs/shop/variables/size").status_code == 403
