"""A cloud is one module and one line of the registry: nothing else in the console names one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import connection

from console.identities.clouds import CLOUDS, Cloud, Setting, Snippet, Trust
from console.identities.clouds.checks import ascii_pattern, checked_regions, matching, required_text
from console.identities.clouds.cloud import Settings
from console.identities.models import CloudIdentity, provider_constraints
from tests.console.identities.identities_made import address, ask_for_token, use, verified
from tests.console.identities.test_connection_tests import PASSED
from tests.console_app import Console
from tests.people import Tenant
from tests.specs.editing import Browser

ROOT = Path(__file__).parents[3]
#: Where a cloud's name is meant, and why.
EXCEPTIONS = {
    "console/identities/clouds": "the clouds themselves",
    "console/identities/migrations": "a migration keeps the values of its day",
    "console/state/migrations": "a migration keeps the values of its day",
    "console/state/models.py": "the name of the store behind Terraform's backend azurerm",
    "console/state/backends.py": "the variables that Terraform's backend s3 reads",
    "specs/expressions.py": "an example of Terraform's addresses",
    "specs/spec_settings.py": "an example of Terraform's resource types",
    "console/runners/start_commands.py": "the extras that pip installs beside a runner",
}
NAME = re.compile(rf"(?<![a-z])({'|'.join(CLOUDS)})(?![a-z])", re.IGNORECASE)


class Harbour(Cloud):
    """A fifth cloud, as one module would hold it."""

    key = "harbour"
    label = "Harbour Cloud"
    summary = "A berth that jobs moor at."
    form = (
        Setting(name="berth", label="Berth", placeholder="B12", required=True),
        Setting(name="regions", label="Quays to scan", control="words"),
    )
    region_pattern = ascii_pattern(r"quay-\d")
    region_example = "quay-1"
    resource_kinds = ("region", "berth")

    def checked(self, settings: Settings) -> Settings:
        check = matching("regions", self.region_pattern, "a quay such as quay-1")
        return {
            "berth": required_text(settings, "berth", "B12"),
            "regions": checked_regions(settings, check),
        }

    def account(self, settings: Settings) -> str:
        return str(settings["berth"])

    def audience(self, settings: Settings) -> str:
        return "harbour.example"

    def session_seconds(self, settings: Settings) -> int:
        return 600

    def setup(self, settings: Settings, trust: Trust) -> list[Snippet]:
        return [
            Snippet("cli", "harbour", "Run it.", "sh", f"harbour trust {trust.issuer} {settings['berth']}")
        ]


@pytest.fixture
def harbour(ours: Tenant, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """Register the cloud, and let the database take its name as the migration of a release would."""
    cloud, before = Harbour(), provider_constraints()
    monkeypatch.setitem(CLOUDS, cloud.key, cloud)
    with connection.schema_editor() as editor:
        for constraint in before:
            editor.remove_constraint(CloudIdentity, constraint)
        for constraint in provider_constraints():
            editor.add_constraint(CloudIdentity, constraint)
    return cloud


def test_nothing_else_names_a_cloud() -> None:
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for package in ("console", "specs")
        for path in sorted((ROOT / package).rglob("*.py"))
        if not any(str(path.relative_to(ROOT)).startswith(exception) for exception in EXCEPTIONS)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if NAME.search(line)
    ]
    assert not lines, "\n".join(lines)
    for exception in EXCEPTIONS:
        path = ROOT / exception
        texts = [file.read_text() for file in (path.rglob("*.py") if path.is_dir() else [path])]
        assert any(NAME.search(text) for text in texts), f"{exception} needs no exception any more"


def test_no_template_compares_the_name_of_a_cloud() -> None:
    quoted = re.compile(rf"[\"']({'|'.join(CLOUDS)})[\"']")
    for path in sorted((ROOT / "templates").rglob("*.html")):
        assert not quoted.search(path.read_text()), path


def test_a_fifth_cloud_needs_its_registration_only(console: Console, ours: Tenant, harbour: Cloud) -> None:
    admin = Browser(ours, ours.admin)
    assert "A berth that jobs moor at." in admin.reads("identities/connect/")
    form = admin.reads("identities/connect/", provider="harbour")
    assert "Quays to scan" in form
    assert 'placeholder="B12"' in form
    posted = {"provider": "harbour", "name": "Docks", "specs": "*", "environments": "*", "pools": "*"}
    assert admin.post("identities/connect/", posted | {"berth": ""}).status_code == 400
    plain = Browser(ours, ours.admin, scripts=False)
    answer = plain.post("identities/connect/", posted | {"berth": "B7", "regions": "quay-1"})
    assert (answer.status_code, answer["location"]) == (302, "/ours/identities/docks/setup/")
    assert "harbour trust http://127.0.0.1:8000 B7" in admin.reads("identities/docks/setup/")
    page = admin.reads("identities/docks/")
    assert "Harbour Cloud" in page
    assert "10 min 00 s, renewed while a job runs" in page
    assert "Harbour Cloud" in admin.reads("identities/")
    assert "Docks · Harbour Cloud B7" in admin.reads(f"specs/{ours.spec.slug}/settings/")
    ambient = admin.reads("identities/connect/", provider="ambient")
    assert '<option value="harbour">' in ambient, "a runner may have credentials of its own for it"


def test_the_api_and_the_runners_know_a_fifth_cloud(console: Console, ours: Tenant, harbour: Cloud) -> None:
    api, runner = console.person(ours, "admin"), console.new_runner(ours)
    body = {"name": "Docks", "provider": "harbour", "settings": {"berth": "B7", "regions": ["pier"]}}
    refused = api.post(address(ours), json=body)
    assert (refused.status_code, refused.json()["field"]) == (400, "settings.regions")
    answer = api.post(address(ours), json=body | {"settings": {"berth": "B7"}})
    assert answer.status_code == 201, answer.text
    identity = answer.json()
    assert (identity["account"], identity["audience"], identity["session_seconds"]) == (
        "B7", "harbour.example", 600,
    )  # fmt: skip
    (snippet,) = api.get(f"/api/identities/{identity['id']}/setup").json()["data"]
    assert snippet["key"] == "cli"
    assert api.post(f"/api/identities/{identity['id']}/test").status_code == 202
    claim = runner.claim(types=["CONNECTION_TEST"])
    assert claim is not None
    assert claim.identity is not None
    assert (claim.identity.provider, claim.identity.settings) == ("harbour", {"berth": "B7", "regions": []})
    assert claim.snapshot["kinds"] == ["region", "berth"]
    assert runner.start(claim).status_code == 200
    token = ask_for_token(runner, claim).json()["token"]
    assert verified(console, token, audience="harbour.example")["action"] == "test"
    assert runner.report(claim, "SUCCESS", result=PASSED).status_code == 200
    assert api.get(f"/api/identities/{identity['id']}").json()["test_passed"] is True


def test_a_region_of_a_spec_is_one_of_the_fifth_cloud(console: Console, ours: Tenant, harbour: Cloud) -> None:
    admin = console.person(ours, "admin")
    body = {"name": "Docks", "provider": "harbour", "settings": {"berth": "B7"}}
    identity = CloudIdentity.objects.get(pk=admin.post(address(ours), json=body).json()["id"])
    spec = use(ours, identity)
    path = f"/api/specs/{spec.pk}"
    refused = admin.request("PATCH", path, json={"region": "eu-central-1"})
    assert (refused.status_code, refused.json()["field"]) == (400, "region"), refused.text
    assert "such as quay-1" in refused.json()["detail"]
    assert admin.request("PATCH", path, json={"region": "quay-3"}).status_code == 200
