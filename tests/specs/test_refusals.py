"""Bad input is refused at the door, through the API: the field, the line, the remedy; nothing is changed."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from specs.models import Revision, Spec
from tests.console_app import Console, Http
from tests.git_host import Repository
from tests.people import Tenant
from tests.specs.editing import INLINE, address, everything_stored, new_spec, post_spec, refusal
from tests.specs.test_archives import HOSTILE


def inline(**files: str) -> dict[str, Any]:
    return {"kind": "inline", "files": {name.replace("_", "."): text for name, text in files.items()}}


def archive_of(content: bytes) -> dict[str, Any]:
    return {"kind": "inline", "archive": base64.b64encode(content).decode()}


def git(url: str, **more: str) -> dict[str, Any]:
    return {"kind": "git", "url": url, **more}


BAD_SOURCES: dict[str, tuple[Any, str, str]] = {
    "HCL that does not parse": (inline(main_tf="locals {\n a = = 1\n}\n"), "source.files", "main.tf, line 2"),
    "a cycle": (inline(main_tf="locals {\n a = local.b\n b = local.a\n}\n"), "source.files", "cycle"),
    "a module that does not parse": (
        {"kind": "inline", "files": {"main.tf": 'module "m" { source = "./m" }', "m/a.tf": "locals {"}},
        "source.files", "m/a.tf, line 1"),
    "a file of Slipway's own": (
        {"kind": "inline", "files": {"main.tf": "", "slipway_version.tf.json": "{}"}},
        "source.files", "Slipway writes itself"),
    "no files": ({"kind": "inline", "files": {}}, "source.files", "add one that ends in .tf"),
    "files that are no texts": ({"kind": "inline", "files": {"a.tf": 3}}, "source.files", "names and texts"),
    "a NUL in a file": (inline(main_tf="# \0\n"), "source.files.main.tf", "not text"),
    "a name that leads out": ({"kind": "inline", "files": {"../a.tf": ""}}, "source.files", "Rename it"),
    "an archive bomb": (archive_of(HOSTILE["a zip bomb"][0]), "archive", "unpacks to more than"),
    "a tar bomb": (archive_of(HOSTILE["a tar bomb"][0]), "archive", "unpacks to more than"),
    "a damaged archive": (archive_of(HOSTILE["a damaged LZMA"][0]), "archive", "Pack it again"),
    "no archive": (archive_of(b"hello"), "archive", "Pack it again"),
    "no base64": ({"kind": "inline", "archive": "???"}, "source.archive", "expected base64"),
    "no such blueprint": ({"kind": "blueprint", "name": "../demo"}, "", "no blueprint named"),
    "no such kind": ({"kind": "svn"}, "source.kind", "blueprint, inline or git"),
    "no object": ([1], "source", "expected an object"),
    "credentials in the address": (
        git("https://me:s3cr3t-in-url@example.com/x.git"), "source.url", "carries credentials"),
    "a name in the address": (git("https://me@example.com/x.git"), "source.url", "carries credentials"),
    "a file": (git("file:///etc"), "source.url", "scheme 'file' is not allowed; use https"),
    "a helper": (git("ext::sh -c id"), "source.url", "spaces"),
    "a helper without spaces": (git("ext::id"), "source.url", "scheme 'ext' is not allowed"),
    "ssh": (git("ssh://git@example.com/x.git"), "source.url", "scheme 'ssh'"),
    "ssh in short": (git("git@example.com:x.git"), "source.url", "is not allowed; use https"),
    "git's own": (git("git://example.com/x.git"), "source.url", "scheme 'git'"),
    "plain http": (git("http://example.com/x.git"), "source.url", "use https"),
    "this machine": (git("https://127.0.0.1/x.git"), "source.url", "internal address"),
    "this machine by name": (git("https://localhost/x.git"), "source.url", "internal address"),
    "this machine as a number": (git("https://2130706433/x.git"), "source.url", "internal address"),
    "this machine in IPv6": (git("https://[::1]/x.git"), "source.url", "internal address"),
    "this machine inside IPv6": (git("https://[::ffff:127.0.0.1]/x.git"), "source.url", "internal address"),
    "a cloud's metadata": (git("https://169.254.169.254/latest"), "source.url", "internal address"),
    "a private network": (git("https://10.1.2.3/x.git"), "source.url", "internal address"),
    "a private network behind NAT64": (git("https://[64:ff9b::a01:203]/x.git"), "source.url", "internal"),
    "no host": (git("https:///x.git"), "source.url", "has no host"),
    "no address": (git(""), "source.url", "scheme"),
    "half an address": (git("https://[::1"), "source.url", "not a URL"),
    "a bad port": (git("https://example.com:99999/x.git"), "source.url", "not a URL"),
    "a backslash": (git("https://example.com\\@127.0.0.1/x.git"), "source.url", "control characters"),
}  # fmt: skip


def test_a_bad_source_is_refused_for_a_new_spec_and_for_one_that_is_there(
    console: Console, ours: Tenant
) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours)
    before = _as_it_is(api, spec)
    for name, (source, field, words) in BAD_SOURCES.items():
        for answer in (
            post_spec(api, ours, name="other", source=source),
            api.put(address(spec, "/source"), json={"source": source}),
        ):
            assert answer.status_code in (400, 404), (name, answer.text)
            assert answer.json().get("field", "") == field, (name, answer.text)
            assert words in answer.json()["detail"], (name, answer.text)
            assert "s3cr3t-in-url" not in answer.text
    assert _as_it_is(api, spec) == before
    assert Spec.objects.count() == Revision.objects.count() == 1
    assert "s3cr3t-in-url" not in everything_stored()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (rb'{"source": {"kind": "inline", "files": {"a.tf": "\ud800"}}}', "source.files.a.tf"),
        (rb'{"tags": ["whole \ud83d\ude00", "\uDC00 half"]}', "tags[1]"),
        (rb'{"variables": {"\ud800": "a key"}}', "variables"),
        (rb'{"\ud800": "a key"}', ""),
        (rb'"\ud800"', ""),
    ],
)
def test_half_a_character_is_refused(console: Console, ours: Tenant, body: bytes, field: str) -> None:
    answer = console.person(ours, "operator").post(
        "/api/specs", content=body, headers={"Content-Type": "application/json"}
    )
    status, where, sentence = refusal(answer)
    assert (status, where) == (400, field)
    assert "an unpaired surrogate" in sentence


def test_a_body_that_is_nested_too_deeply_is_refused(console: Console, ours: Tenant) -> None:
    body = b'{"organization": "ours", "name": "x", "variables": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    answer = console.person(ours, "operator").post(
        "/api/specs", content=body, headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "parse_error")


def test_a_name_in_any_letters_has_an_address(console: Console, ours: Tenant) -> None:
    api = console.person(ours, "operator")
    answer = post_spec(api, ours, name="名前")
    assert (answer.status_code, answer.json()["name"]) == (201, "名前"), answer.text
    assert answer.json()["slug"].startswith("spec-")
    assert post_spec(api, ours, name="名前").status_code == 409
    assert refusal(post_spec(api, ours, name="!?"))[:2] == (400, "name")


def test_what_is_wrong_with_a_repository_is_said(
    console: Console, ours: Tenant, repository: Repository
) -> None:
    repository.commit({"main.tf": "locals {\n", "docs/readme.md": "x"})
    api = console.person(ours, "operator")
    expected = {
        "source.ref": git(repository.url, ref="no-such-branch"),
        "source.path": git(repository.url, path="no/such/folder"),
        "source.url": git(repository.url.replace("infrastructure", "elsewhere")),
        "source.files": git(repository.url),
    }
    for field, source in expected.items():
        assert refusal(post_spec(api, ours, source=source))[:2] == (400, field)
    broken = post_spec(api, ours, source=git(repository.url)).json()
    assert (broken["file"], broken["line"]) == ("main.tf", 1)
    assert refusal(post_spec(api, ours, source=git(repository.url, path="docs")))[1] == "source.files"
    for odd in ("--upload-pack=id", "a b", "a:b", "../x\n"):
        assert refusal(post_spec(api, ours, source=git(repository.url, ref=odd)))[1] == "source.ref", odd
    assert refusal(post_spec(api, ours, source=git(repository.url, path="../x")))[1] == "source.path"
    assert Spec.objects.count() == 0


BAD_VALUES: dict[str, tuple[str, Any, str]] = {
    "an unknown name": ("sise", 3, "has no variable 'sise'"),
    "another type": ("size", "big", "size: expected number, got string"),
    "another type inside": ("zones", ["a", {}], "zones[1]: expected string, got map"),
    "a NUL": ("zones", ["a\0"], "not text"),
    "a number that no claim can carry": ("size", 10**400, "has more than 64 bits. Give it as text"),
    "a number that would be rounded": ("size", 2**64, "has more than 64 bits. Give it as text"),
    "too deep": ("zones", [[[[[]]]]] * 2, "zones[0]: expected string"),
}


@pytest.mark.parametrize("sensitive", [False, True])
def test_a_bad_value_is_refused(console: Console, ours: Tenant, sensitive: bool) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours)
    body_field = "sensitive_variables" if sensitive else "variables"
    for name, value, words in BAD_VALUES.values():
        change = api.put(address(spec, f"/variables/{name}"), json={"value": value, "sensitive": sensitive})
        creation = post_spec(api, ours, name="other", **{body_field: {name: value}})
        for answer in (change, creation):
            status, field, detail = refusal(answer)
            assert (status, words in detail) == (400, True), answer.text
            assert field.startswith(f"variables.{name}")
    assert spec.revisions.count() == 1
    assert Spec.objects.count() == 1


def test_a_missing_value_is_refused_before_anything_is_queued(console: Console, ours: Tenant) -> None:
    files = {"main.tf": 'variable "name" {\n  type = string\n}\n'}
    api = console.person(ours, "operator")
    spec = new_spec(api, ours, source={"kind": "inline", "files": files})
    answer = api.post("/api/jobs", json={"spec": str(spec.pk), "type": "PLAN"})
    assert refusal(answer) == (
        400,
        "variables.name",
        "Variable 'name' (string) has no value and no default. Give it a value.",
    )
    assert api.get("/api/jobs").json()["data"] == []
    api.put(address(spec, "/variables/name"), json={"value": "harbour"})
    assert api.post("/api/jobs", json={"spec": str(spec.pk), "type": "PLAN"}).status_code == 202


def test_names_that_would_do_harm_are_refused(console: Console, ours: Tenant) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours)
    environment = ("TF_LOG", "PATH", "LD_PRELOAD", "SLIPWAY_X", "a b", "HOME")
    for name, category in [("1a", "variables"), *((name, "environment") for name in environment)]:
        answer = api.put(address(spec, f"/variables/{name}"), json={"value": "x", "category": category})
        assert refusal(answer)[:2] == (400, "name"), name
    # Linux would not start Terraform with it.
    body = {"value": "x" * 200_000, "category": "environment"}
    assert refusal(api.put(address(spec, "/variables/LARGE"), json=body))[:2] == (400, "value")
    assert spec.revisions.count() == 1


BAD_SETTINGS: dict[str, tuple[str, Any]] = {
    "a text for a switch": ("auto_apply", "yes"),
    "a number for a switch": ("protected", 1),
    "no approvals": ("required_approvals", 0),
    "half an approval": ("required_approvals", 1.5),
    "a negative age": ("plan_max_age_hours", -1),
    "an age beyond the column": ("plan_max_age_hours", 10**12),
    "a share over the whole": ("destroy_guard", {"share": 1.5}),
    "no share": ("destroy_guard", {"share": "all"}),
    "no types": ("destroy_guard", {"share": 0.5, "types": ["aws db"]}),
    "a list of labels": ("labels", ["a"]),
    "a label that is no text": ("labels", {"a": 1}),
    "a label with a space": ("labels", {"a b": "c"}),
    "no version": ("terraform_version", "latest"),
    "no region": ("region", "Frankfurt (Main)"),
    "a region that is no text": ("region", 1),
    "no time": ("expires_at", "tomorrow"),
    "a time without its zone": ("expires_at", "2027-01-31T12:00:00"),
    "a day that is none": ("expires_at", "2027-02-31T12:00:00Z"),
    "an environment with a space": ("environment", "my environment"),
    "a name that is none": ("name", " "),
    "a name that is a list": ("name", ["x"]),
    "a name that is too long": ("name", "x" * 101),
    "a description with a NUL": ("description", "\0"),
    "a gate that is none": ("gates", [{"kind": "luck"}]),
    "a setting that is none": ("organization", "theirs"),
}


def test_a_bad_setting_is_refused_and_none_of_the_others_is_changed(console: Console, ours: Tenant) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours)
    for why, (name, value) in BAD_SETTINGS.items():
        answer = api.request("PATCH", address(spec), json={"region": "eu-central-1", name: value})
        assert (answer.status_code, answer.json()["field"].partition(".")[0]) == (400, name), (
            why,
            answer.text,
        )
        assert api.get(address(spec)).json()["region"] == ""


def test_settings_are_changed_together_and_on_record(console: Console, ours: Tenant) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours)
    ours.new_pool("gpu")
    expected = {
        "name": "The shop", "environment": "production", "description": "Sells.", "labels": {"team": "web"},
        "region": "eu-central-1", "terraform_version": ">= 1.8, < 2.0", "auto_apply": True,
        "required_approvals": 2, "plan_max_age_hours": 4, "expires_at": "2027-01-31T12:00:00Z",
        "protected": True, "pool": "gpu", "destroy_guard": {"share": 0.1, "types": ["aws_db_*"]},
    }  # fmt: skip
    answer = api.request("PATCH", address(spec), json=expected)
    assert answer.status_code == 200, answer.text
    assert {key: answer.json()[key] for key in expected} == expected
    assert api.request("PATCH", address(spec), json={"pool": "none"}).status_code == 404


def test_what_protects_a_protected_spec_is_an_admins_to_change(console: Console, ours: Tenant) -> None:
    operator, admin = console.person(ours, "operator"), console.person(ours, "admin")
    spec = new_spec(operator, ours)
    assert operator.request("PATCH", address(spec), json={"protected": True}).status_code == 200
    for name, value in {
        "protected": False, "required_approvals": 3, "destroy_guard": {"share": 1}, "auto_apply": True,
        "plan_max_age_hours": 900, "gates": [{"kind": "approval"}],
    }.items():  # fmt: skip
        assert operator.request("PATCH", address(spec), json={name: value}).status_code == 403, name
    assert operator.request("PATCH", address(spec), json={"region": "eu"}).status_code == 200
    assert admin.request("PATCH", address(spec), json={"protected": False}).status_code == 200


def test_a_body_that_is_no_object_is_refused(console: Console, ours: Tenant) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours)
    assert api.request("PATCH", address(spec), json=[1]).status_code == 400
    assert api.put(address(spec, "/variables/size"), json={"sensitive": True}).json()["field"] == "value"
    assert post_spec(api, ours, name="x", settings=[1], source=INLINE).json()["field"] == "settings"
    compare = api.get(address(spec, "/revisions/compare?from=1&to=x"))
    assert refusal(compare)[:2] == (400, "to")
    assert api.get(address(spec, "/revisions/compare?from=1&to=9")).status_code == 404
    assert api.post(address(spec, "/revisions/9/restore")).status_code == 404
    assert api.delete(address(spec, "/variables/size?category=variables")).status_code == 404


def _as_it_is(api: Http, spec: Spec) -> Any:
    return api.get(address(spec)).json(), api.get(address(spec, "/revisions")).json()
