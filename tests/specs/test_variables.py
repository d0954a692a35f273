"""Variables: which value wins and where it comes from, and secrets that nobody reads again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.vault import _ciphers
from specs.models import SealedValue
from specs.variables import reveal
from tests.console_app import Console, Http
from tests.people import Tenant
from tests.specs.editing import FILES, INLINE, Browser, address, everything_stored, new_spec, refusal

SECRET = "correct-horse-battery-staple"


def put_set(api: Http, tenant: Tenant, name: str, variables: dict[str, Any], **body: Any) -> Any:
    path = f"/api/organizations/{tenant.organization.slug}/variable-sets"
    return api.put(path, json={"name": name, "variables": variables, **body})


def value(content: Any, **more: Any) -> dict[str, Any]:
    return {"value": content, **more}


def variables_by_name(api: Http, spec: Any) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in api.get(address(spec, "/variables")).json()["data"]}


def test_every_variable_is_shown_with_where_its_value_comes_from(console: Console, ours: Tenant) -> None:
    admin = console.person(ours, "admin")
    spec = new_spec(admin, ours, variables={"size": 9})
    assert put_set(
        admin, ours, "base", {"size": value(1), "zones": value(["x"])}, for_all_specs=True
    ).is_success
    assert put_set(admin, ours, "team", {"size": value(2), "zones": value(["t"])}, specs=["shop"]).is_success
    high = {"size": value(3), "REGION": value("eu", category="environment"), "elsewhere": value(1)}
    assert put_set(admin, ours, "high", high, specs=["shop"], priority=5).is_success
    variables = variables_by_name(admin, spec)
    size, zones = variables["size"], variables["zones"]
    assert (size["value"], size["origin"]) == (9, "this Spec")
    assert size["overrides"] == ["default", "set base", "set team", "set high"]
    assert (size["type"], size["description"], size["default"]) == ("number", "How large it is.", 3)
    assert size["declared_in"] == {"file": "variables.tf", "line": 1}
    assert (zones["value"], zones["origin"], zones["overrides"]) == (
        ["t"],
        "set team",
        ["default", "set base"],
    )
    assert (variables["password"]["value"], variables["password"]["origin"]) == ("(sensitive)", "default")
    assert (variables["REGION"]["category"], variables["REGION"]["value"]) == ("environment", "eu")
    assert (variables["elsewhere"]["used"], variables["size"]["used"]) == (False, True)


def test_a_file_of_values_is_a_place_that_values_come_from(console: Console, ours: Tenant) -> None:
    admin = console.person(ours, "admin")
    files = {"main.tf": 'variable "name" {\n  type = string\n}\n', "team.auto.tfvars": 'name = "harbour"\n'}
    spec = new_spec(admin, ours, source={"kind": "inline", "files": files})
    name = variables_by_name(admin, spec)["name"]
    assert (name["value"], name["origin"]) == ("harbour", "file team.auto.tfvars")
    answer = admin.post("/api/jobs", json={"spec": str(spec.pk), "type": "PLAN"})
    assert answer.status_code == 202, "it lacks no value"
    admin.put(address(spec, "/variables/name"), json={"value": "quay"})
    name = variables_by_name(admin, spec)["name"]
    assert (name["value"], name["overrides"]) == ("quay", ["file team.auto.tfvars"])


def test_a_job_carries_what_the_page_shows(console: Console, ours: Tenant) -> None:
    admin = console.person(ours, "admin")
    spec = new_spec(admin, ours, sensitive_variables={"password": SECRET})
    elsewhere = {
        "size": value(7),
        "elsewhere": value(1),
        "TOKEN": value(SECRET, category="environment", sensitive=True),
    }
    assert put_set(admin, ours, "base", elsewhere, for_all_specs=True).is_success
    job = ours.request(spec=spec)
    assert job.config_snapshot["variables"] == {"size": 7}
    assert SECRET not in json.dumps(job.config_snapshot)
    claim = console.new_runner(ours).take()
    assert claim.variables == {"size": 7, "password": SECRET}
    assert claim.environment["TOKEN"] == SECRET
    assert set(claim.sensitive_variables) == {"password", "TOKEN"}


def test_changing_a_set_changes_the_hash_of_what_uses_it(console: Console, ours: Tenant) -> None:
    admin = console.person(ours, "admin")
    spec, other = new_spec(admin, ours), new_spec(admin, ours, name="other")
    hashes = [ours.request(spec=item).snapshot_hash for item in (spec, other)]
    put_set(admin, ours, "team", {"size": value(2)}, specs=["shop"])
    from console.jobs.services import current_document
    from specs.snapshot import snapshot_hash

    assert snapshot_hash(current_document(spec)) != hashes[0]
    assert snapshot_hash(current_document(other)) == hashes[1]


def test_a_value_of_a_set_that_does_not_fit_is_refused_before_anything_is_queued(
    console: Console, ours: Tenant
) -> None:
    admin = console.person(ours, "admin")
    spec = new_spec(admin, ours)
    put_set(admin, ours, "base", {"size": value("large")}, for_all_specs=True)
    answer = admin.post("/api/jobs", json={"spec": str(spec.pk), "type": "PLAN"})
    assert refusal(answer)[:2] == (400, "variables.size")


def test_a_sensitive_value_is_nowhere_but_sealed(
    console: Console, ours: Tenant, caplog: pytest.LogCaptureFixture
) -> None:
    """Given in every way that there is, used by a job, and then looked for everywhere."""
    admin = console.person(ours, "admin")
    spec = new_spec(admin, ours, sensitive_environment={"API_KEY": SECRET}, variables={"password": SECRET})
    answers = [
        admin.put(address(spec, "/variables/password"), json={"value": SECRET + "-2", "sensitive": True}),
        admin.put(address(spec, "/variables/password"), json={"value": SECRET, "sensitive": False}),
        put_set(admin, ours, "keys", {"password": value(SECRET, sensitive=True)}, for_all_specs=True),
        admin.get(address(spec)),
        admin.get(address(spec, "/variables")),
        admin.get(address(spec, "/revisions")),
        admin.get(address(spec, "/revisions/1")),
        admin.get(address(spec, "/revisions/compare?from=1&to=2")),
        admin.get(f"/api/organizations/{ours.organization.slug}/variable-sets"),
    ]
    job = ours.request(spec=spec)
    claim = console.new_runner(ours).take()
    assert claim.variables["password"] == SECRET
    answers += [admin.get(f"/api/jobs/{job.pk}"), admin.get(f"/api/jobs/{job.pk}/events")]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert SECRET not in answer.text
    browser = Browser(ours, ours.admin)
    for page in ("", "variables/", "revisions/", "settings/", "source/"):
        assert SECRET not in browser.reads(f"specs/shop/{page}"), page
    assert SECRET not in browser.reads("specs/shop/revisions/compare", **{"from": 1, "to": 2})
    assert SECRET not in browser.reads("variable-sets/")
    assert SECRET not in browser.reads("specs/shop/variables/password", category="variables")
    assert SECRET not in everything_stored()
    assert SECRET not in caplog.text


def test_what_the_configuration_calls_sensitive_is_sealed_whoever_gives_it(
    console: Console, ours: Tenant
) -> None:
    admin = console.person(ours, "admin")
    spec = new_spec(admin, ours, variables={"password": SECRET, "size": 1})
    document = spec.revisions.get().document
    assert document["variables"] == {"size": 1}
    assert list(document["secrets"]["variables"]) == ["password"]
    open_files = {**FILES, "variables.tf": FILES["variables.tf"].replace("  sensitive = true\n", "")}
    other = new_spec(
        admin, ours, name="other", source={"kind": "inline", "files": open_files}, variables={"password": "x"}
    )
    admin.put(address(other, "/source"), json={"source": INLINE})
    assert other.revisions.get(number=2).document["variables"] == {}


def test_what_a_set_gives_in_clear_is_sealed_where_it_is_called_sensitive(
    console: Console, ours: Tenant
) -> None:
    admin = console.person(ours, "admin")
    spec = new_spec(admin, ours)
    put_set(admin, ours, "shared", {"password": value(SECRET)}, for_all_specs=True)
    job = ours.request(spec=spec)
    assert SECRET not in json.dumps(job.config_snapshot)
    claim = console.new_runner(ours).take()
    assert (claim.variables["password"], claim.sensitive_variables) == (SECRET, ["password"])


def test_the_digest_is_keyed_and_the_same_value_is_kept_once(
    console: Console, ours: Tenant, theirs: Tenant
) -> None:
    digests = set()
    for tenant in (ours, theirs):
        api = console.person(tenant, "operator")
        for name in ("one", "two"):
            spec = new_spec(api, tenant, name=name, sensitive_variables={"password": SECRET})
            digests.add(spec.revisions.get().document["secrets"]["variables"]["password"])
    assert SealedValue.objects.count() == len(digests) == 2


def test_the_same_secret_again_makes_no_revision_and_another_one_does(console: Console, ours: Tenant) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours, sensitive_variables={"password": SECRET})
    body = {"value": SECRET, "sensitive": True}
    assert api.put(address(spec, "/variables/password"), json=body).json()["number"] == 1
    assert api.put(address(spec, "/variables/password"), json={**body, "value": "x"}).json()["number"] == 2


def test_secrets_survive_the_rotation_of_the_encryption_keys(
    console: Console, ours: Tenant, settings: Any
) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours, sensitive_variables={"password": SECRET})
    newer = "new:" + "A" * 43 + "="
    settings.SLIPWAY_ENCRYPTION_KEYS = f"{newer},{settings.SLIPWAY_ENCRYPTION_KEYS}"
    _ciphers.cache_clear()
    try:
        api.put(address(spec, "/variables/size"), json={"value": 4, "sensitive": True})
        document = spec.revisions.get(number=2).document
        opened = reveal(document, organization_id=ours.organization.pk)
        assert opened.variables == {"password": SECRET, "size": 4}
        key_ids = {bytes(item.sealed)[1:9].rstrip(b"\0") for item in SealedValue.objects.all()}
        assert key_ids == {b"test", b"new"}
    finally:
        settings.SLIPWAY_ENCRYPTION_KEYS = settings.SLIPWAY_ENCRYPTION_KEYS.partition(",")[2]
        _ciphers.cache_clear()


def test_a_set_keeps_a_secret_that_is_not_given_again(console: Console, ours: Tenant) -> None:
    admin = console.person(ours, "admin")
    first = put_set(admin, ours, "keys", {"token": value(SECRET, sensitive=True), "size": value(1)}).json()
    again = put_set(admin, ours, "keys", {"token": {"sensitive": True}, "size": value(2)}).json()
    assert again["variables"]["secrets"] == first["variables"]["secrets"]
    assert again["variables"]["variables"] == {"size": 2}
    lost = put_set(admin, ours, "keys", {"other": {"sensitive": True}})
    assert refusal(lost)[:2] == (400, "variables.other")
    assert refusal(put_set(admin, ours, "keys", {"size": {}}))[:2] == (400, "variables.size")
    assert put_set(console.person(ours, "operator"), ours, "keys", {}).status_code == 403
    assert put_set(admin, ours, "x", {}, specs=["no-such-spec"]).status_code == 404
    path = f"/api/organizations/{ours.organization.slug}/variable-sets/keys"
    assert admin.delete(path).status_code == 204
    assert admin.delete(path).status_code == 404


def test_a_variable_can_be_removed_and_the_next_layer_shows(console: Console, ours: Tenant) -> None:
    admin = console.person(ours, "admin")
    spec = new_spec(admin, ours, variables={"size": 9})
    put_set(admin, ours, "base", {"size": value(1)}, for_all_specs=True)
    assert admin.delete(address(spec, "/variables/size")).json()["message"] == "Removed size"
    assert variables_by_name(admin, spec)["size"]["origin"] == "set base"
