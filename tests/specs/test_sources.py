"""The three sources of a Spec through the API: each becomes an immutable, numbered revision."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from console.audit.models import AuditEvent
from specs.git import GitSource, resolve
from specs.models import Revision, Spec
from specs.services import change_variable, follow_git
from tests.console_app import Console
from tests.git_host import Repository
from tests.people import Tenant
from tests.specs.editing import FILES, INLINE, address, new_spec, post_spec, refusal
from tests.specs.test_archives import tar_of, zip_of

GIT_FILES = {"env/prod/main.tf": FILES["main.tf"], "env/prod/variables.tf": FILES["variables.tf"]}


def test_a_spec_is_made_of_inline_files(console: Console, ours: Tenant) -> None:
    api = console.person(ours, "operator")
    answer = post_spec(api, ours, variables={"size": 5}, settings={"environment": "staging"})
    assert answer.status_code == 201, answer.text
    assert (answer.json()["source_kind"], answer.json()["revision"]) == ("inline", 1)
    assert answer.json()["environment"] == "staging"
    (line,) = api.get(f"/api/specs/{answer.json()['id']}/revisions").json()["data"]
    assert (line["number"], line["message"]) == (1, "Created from files")
    revision = api.get(f"/api/specs/{answer.json()['id']}/revisions/1").json()
    assert (revision["number"], revision["author"]) == (1, "ours-operator")
    assert revision["document"]["files"] == FILES
    assert revision["document"]["variables"] == {"size": 5}


@pytest.mark.parametrize("pack", [zip_of, tar_of])
def test_a_spec_is_made_of_an_archive(console: Console, ours: Tenant, pack: Any) -> None:
    archive = base64.b64encode(pack({f"project/{name}": text for name, text in FILES.items()})).decode()
    spec = new_spec(console.person(ours, "operator"), ours, source={"kind": "inline", "archive": archive})
    assert spec.revisions.get().document["files"] == FILES


def test_a_spec_is_made_of_a_blueprint(console: Console, ours: Tenant) -> None:
    source = {"kind": "blueprint", "name": "demo"}
    spec = new_spec(console.person(ours, "operator"), ours, source=source, variables={"delay": 0})
    document = spec.revisions.get().document
    assert (spec.source_kind, spec.blueprint) == ("blueprint", "demo")
    assert document["source"] == source
    assert "terraform_data" in document["files"]["main.tf"]


def test_a_git_source_is_pinned_to_the_commit_and_its_files_stay_where_they_are(
    console: Console, ours: Tenant, repository: Repository
) -> None:
    commit = repository.commit(GIT_FILES)
    source = {"kind": "git", "url": repository.url, "ref": "main", "path": "env/prod"}
    spec = new_spec(console.person(ours, "operator"), ours, source=source, variables={"size": 4})
    document = spec.revisions.get().document
    assert document["source"] == {**source, "commit": commit}
    assert document["files"] == {}


def test_a_plan_takes_the_commit_that_the_ref_is_at_then(
    console: Console, ours: Tenant, repository: Repository
) -> None:
    first = repository.commit(GIT_FILES)
    repository.tag("v1")
    source = {"kind": "git", "url": repository.url, "path": "env/prod"}
    api = console.person(ours, "operator")
    spec, pinned = (
        new_spec(api, ours, source=source),
        new_spec(api, ours, name="pinned", source={**source, "ref": "v1"}),
    )
    second = repository.commit({"env/prod/main.tf": "# smaller\n"})
    for item in (spec, pinned):
        job = api.post("/api/jobs", json={"spec": str(item.pk), "type": "PLAN"})
        assert job.status_code == 202, job.text
    assert [item.document["source"]["commit"] for item in spec.revisions.order_by("number")] == [
        first,
        second,
    ]
    assert [item.document["source"]["commit"] for item in pinned.revisions.all()] == [first]
    assert spec.revisions.latest("number").message == f"main is now {second[:12]}"


def test_a_git_host_that_is_away_stops_a_new_plan_and_nothing_else(
    console: Console, ours: Tenant, repository: Repository, settings: Any
) -> None:
    repository.commit(GIT_FILES)
    source = {"kind": "git", "url": repository.url, "path": "env/prod"}
    api = console.person(ours, "operator")
    spec = new_spec(api, ours, source=source)
    settings.SLIPWAY_GIT_ALLOWED_HOSTS = []
    plan = api.post("/api/jobs", json={"spec": str(spec.pk), "type": "PLAN"})
    assert refusal(plan)[:2] == (400, "source.url")
    assert api.get(address(spec, "/variables")).status_code == 200
    assert api.put(address(spec, "/variables/size"), json={"value": 9}).status_code == 200
    destroy = {"spec": str(spec.pk), "type": "DESTROY", "confirmation": "shop"}
    assert api.post("/api/jobs", json=destroy).status_code == 202


def test_a_ref_that_moves_to_something_broken_is_refused_and_the_spec_stays(
    console: Console, ours: Tenant, repository: Repository
) -> None:
    repository.commit(GIT_FILES)
    api = console.person(ours, "operator")
    spec = new_spec(api, ours, source={"kind": "git", "url": repository.url, "path": "env/prod"})
    repository.commit({"env/prod/main.tf": "resource {\n"})
    plan = api.post("/api/jobs", json={"spec": str(spec.pk), "type": "PLAN"})
    assert plan.status_code == 400
    assert (plan.json()["file"], plan.json()["line"]) == ("main.tf", 1)
    assert spec.revisions.count() == 1


def test_what_is_saved_while_a_ref_is_followed_stays(
    console: Console, ours: Tenant, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Git host is asked before the Spec is locked, and an edit may come in between."""
    repository.commit(GIT_FILES)
    api = console.person(ours, "operator")
    spec = new_spec(api, ours, source={"kind": "git", "url": repository.url, "path": "env/prod"})
    opened = FILES["variables.tf"].replace("number", "any")
    second = repository.commit({"env/prod/variables.tf": opened})

    def meanwhile(source: GitSource) -> str:
        change_variable(
            spec=spec, category="variables", name="size", value=8, sensitive=False, author=ours.operator
        )
        return resolve(source)

    monkeypatch.setattr("specs.services.resolve", meanwhile)
    document = follow_git(spec=spec, author=ours.operator).document
    assert (document["variables"], document["source"]["commit"]) == ({"size": 8}, second)


def test_a_repeated_request_does_not_follow_the_branch_again(
    console: Console, ours: Tenant, repository: Repository
) -> None:
    repository.commit(GIT_FILES)
    api = console.person(ours, "operator")
    source = {"kind": "git", "url": repository.url, "path": "env/prod"}
    spec = new_spec(api, ours, source=source, variables={"size": 4})
    request = {"spec": str(spec.pk), "type": "PLAN"}
    first = api.post("/api/jobs", json=request, headers={"Idempotency-Key": "one"})
    repository.commit({"env/prod/main.tf": "resource {"})
    again = api.post("/api/jobs", json=request, headers={"Idempotency-Key": "one"})
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json()["id"] == first.json()["id"]
    assert spec.revisions.count() == 1


def test_what_a_new_commit_calls_sensitive_is_sealed(
    console: Console, ours: Tenant, repository: Repository
) -> None:
    clear = FILES["variables.tf"].replace("  sensitive = true\n", "")
    repository.commit({**GIT_FILES, "env/prod/variables.tf": clear})
    api = console.person(ours, "operator")
    source = {"kind": "git", "url": repository.url, "path": "env/prod"}
    spec = new_spec(api, ours, source=source, variables={"password": "a-long-secret"})
    repository.commit({"env/prod/variables.tf": FILES["variables.tf"]})
    document = follow_git(spec=spec, author=ours.operator).document
    assert document["variables"] == {}
    assert list(document["secrets"]["variables"]) == ["password"]


def test_a_spec_can_change_its_source_and_keeps_its_variables(
    console: Console, ours: Tenant, repository: Repository
) -> None:
    commit = repository.commit(GIT_FILES)
    api = console.person(ours, "operator")
    spec = new_spec(api, ours, variables={"size": 8}, sensitive_variables={"password": "a-long-secret"})
    source = {"kind": "git", "url": repository.url, "path": "env/prod"}
    answer = api.put(address(spec, "/source"), json={"source": source, "message": "Move to Git"})
    assert (answer.json()["number"], answer.json()["message"]) == (2, "Move to Git")
    document = spec.revisions.get(number=2).document
    assert document["source"]["commit"] == commit
    assert document["variables"] == {"size": 8}
    assert list(document["secrets"]["variables"]) == ["password"]
    spec.refresh_from_db()
    assert spec.source_kind == "git"


def test_saving_the_same_again_makes_no_revision(console: Console, ours: Tenant) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours)
    assert api.put(address(spec, "/source"), json={"source": INLINE}).json()["number"] == 1
    assert spec.revisions.count() == 1


def test_two_editors_do_not_overwrite_each_other(console: Console, ours: Tenant) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours)
    changed = {**FILES, "extra.tf": "locals {}\n"}
    edit = {"source": {"kind": "inline", "files": changed}, "based_on": 1}
    assert api.put(address(spec, "/source"), json=edit).json()["number"] == 2
    other = {"source": {"kind": "inline", "files": {**FILES, "other.tf": "locals {}\n"}}, "based_on": 1}
    late = api.put(address(spec, "/source"), json=other)
    assert late.status_code == 409
    assert "Revision 2 was saved by ours-operator in the meantime" in late.json()["detail"]
    assert spec.revisions.count() == 2


def test_every_edit_is_in_the_record(console: Console, ours: Tenant) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours)
    api.put(address(spec, "/variables/size"), json={"value": 4})
    api.post(address(spec, "/revisions/1/restore"))
    trail = AuditEvent.objects.filter(target_id=spec.pk).order_by("id")
    assert [(item.action, item.actor_name) for item in trail] == [
        ("spec.created", "ours-operator"),
        ("spec.revised", "ours-operator"),
        ("spec.revised", "ours-operator"),
    ]


def test_a_viewer_reads_and_changes_nothing(console: Console, ours: Tenant, theirs: Tenant) -> None:
    spec = new_spec(console.person(ours, "operator"), ours)
    viewer, stranger = console.person(ours, "viewer"), console.person(theirs, "admin")
    assert viewer.get(address(spec)).status_code == 200
    assert stranger.get(address(spec)).status_code == 404
    assert post_spec(viewer, ours, name="mine").status_code == 403
    changes: list[tuple[str, str, Any]] = [
        ("PATCH", "", {"description": "x"}),
        ("PUT", "/source", {"source": INLINE}),
        ("PUT", "/variables/size", {"value": 1}),
        ("DELETE", "/variables/size", None),
        ("POST", "/revisions/1/restore", None),
        ("POST", "/outputs/size/reveal", None),
    ]
    for method, rest, body in changes:
        assert viewer.request(method, address(spec, rest), json=body).status_code == 403, rest
        assert stranger.request(method, address(spec, rest), json=body).status_code == 404, rest
    assert spec.revisions.count() == 1


def test_following_a_ref_does_nothing_to_other_sources(ours: Tenant) -> None:
    follow_git(spec=ours.spec, author=ours.operator)
    assert Revision.objects.filter(spec=ours.spec).count() == 1


def test_a_name_is_taken_once_in_an_organization(console: Console, ours: Tenant, theirs: Tenant) -> None:
    api = console.person(ours, "operator")
    new_spec(api, ours)
    again = post_spec(api, ours)
    assert refusal(again)[:2] == (409, "name")
    assert post_spec(api, ours, name="New").json()["field"] == "name"
    new_spec(console.person(theirs, "operator"), theirs)
    assert Spec.objects.count() == 2
