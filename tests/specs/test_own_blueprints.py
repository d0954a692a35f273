"""An organization's own blueprints: a folder of a Git repository in its catalogue."""

from __future__ import annotations

from typing import Any

from console.audit.models import AuditEvent
from specs.models import OwnBlueprint
from specs.outputs import record_deploy
from tests.console_app import Console, Http
from tests.git_host import Repository
from tests.people import Tenant
from tests.specs.editing import FILES, address, new_spec, refusal

META = """
title: Company network
description: What every team starts from.
clouds: [aws]
variables:
  size: {group: Size, choices: [1, 3, 5], type: number, default: 3}
components:
  network: size
"""
IN_FOLDER = {f"blueprints/network/{name}": text for name, text in FILES.items()}


def catalogue(api: Http, tenant: Tenant) -> dict[str, dict[str, Any]]:
    answer = api.get(f"/api/organizations/{tenant.organization.slug}/blueprints")
    return {row["name"]: row for row in answer.json()["data"]}


def add(api: Http, tenant: Tenant, repository: Repository, **body: Any) -> Any:
    body_fields = {"name": "network", "url": repository.url, "path": "blueprints/network", **body}
    return api.post(f"/api/organizations/{tenant.organization.slug}/blueprints", json=body_fields)


def test_one_is_added_and_a_spec_is_made_from_it(
    console: Console, ours: Tenant, theirs: Tenant, repository: Repository
) -> None:
    files = {
        **IN_FOLDER,
        "blueprints/network/blueprint.yaml": META,
        "blueprints/network/README.md": "Read me.",
    }
    commit = repository.commit(files)
    admin = console.person(ours, "admin")
    added = add(admin, ours, repository)
    assert (added.status_code, added.json()["commit"]) == (201, commit)
    entry = catalogue(admin, ours)["network"]
    assert (entry["title"], entry["own"], entry["clouds"]) == ("Company network", True, ["aws"])
    assert {"demo", "aws-platform"} < catalogue(admin, ours).keys()
    assert "network" not in catalogue(console.person(theirs, "viewer"), theirs)
    spec = new_spec(console.person(ours, "operator"), ours, source={"kind": "blueprint", "name": "network"})
    document = spec.revisions.get().document
    assert document["source"] == {"kind": "blueprint", "name": "network", "commit": commit}
    assert document["files"] == FILES
    stranger = console.person(theirs, "operator")
    body = {"organization": "theirs", "name": "x", "source": {"kind": "blueprint", "name": "network"}}
    assert stranger.post("/api/specs", json=body).status_code == 404
    record_deploy(spec=spec, outputs={"size": {"sensitive": False, "value": 3, "type": "number"}})
    assert admin.get(address(spec)).json()["components"] == {"network": 3}


def test_it_is_read_again_on_request_and_specs_stay_as_they_are(
    console: Console, ours: Tenant, repository: Repository
) -> None:
    repository.commit(IN_FOLDER)
    admin = console.person(ours, "admin")
    add(admin, ours, repository)
    spec = new_spec(admin, ours, source={"kind": "blueprint", "name": "network"})
    newer = repository.commit({"blueprints/network/more.tf": "locals {}\n"})
    path = f"/api/organizations/{ours.organization.slug}/blueprints/network"
    assert admin.post(path).json()["commit"] == newer
    assert "more.tf" not in spec.revisions.get().document["files"]
    admin.put(address(spec, "/source"), json={"source": {"kind": "blueprint", "name": "network"}})
    assert "more.tf" in spec.revisions.get(number=2).document["files"]
    assert admin.delete(path).status_code == 204
    assert admin.get(address(spec)).status_code == 200
    record_deploy(spec=spec, outputs={"cluster_endpoint": {"sensitive": False, "value": "https://x.example"}})
    assert admin.get(address(spec)).json()["components"] == {"cluster": "https://x.example"}
    actions = AuditEvent.objects.filter(action__startswith="blueprint.").order_by("id")
    assert [row.action for row in actions] == ["blueprint.added", "blueprint.refreshed", "blueprint.removed"]


def laughs() -> str:
    """Nine lines that become a billion words when they are written out."""
    lines = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join(["a0: &a0 ha", *lines, "title: *a8"])


BAD_META = {
    "aliases in aliases": laughs(),
    "nesting without end": "a: " + "[" * 5_000,
    "a day as a choice": "variables: {size: {choices: [2026-01-01]}}",
    "a day that is none": "title: 2026-13-45",
    "choices that are none": "variables: {size: {choices: {a: 1}}}",
    "too much": "title: " + "x" * 70_000,
}


def test_bad_ones_are_refused(console: Console, ours: Tenant, repository: Repository) -> None:
    repository.commit(
        {**IN_FOLDER, "bad/main.tf": "locals {\n", "odd/main.tf": "", "odd/blueprint.yaml": "a: [\n"}
    )
    repository.commit({"list/main.tf": "", "list/blueprint.yaml": "- a\n"})
    admin = console.person(ours, "admin")
    assert add(console.person(ours, "operator"), ours, repository).status_code == 403
    messages = {
        "source.path": {"path": "nowhere"},
        "source.files": {"path": "bad"},
        "source.ref": {"ref": "no-such-branch"},
        "source.url": {"url": "https://10.0.0.1/x.git"},
    }
    for field, body in messages.items():
        assert refusal(add(admin, ours, repository, **body))[:2] == (400, field)
    odd = add(admin, ours, repository, path="odd")
    assert (odd.status_code, odd.json()["file"], "not YAML" in odd.json()["detail"]) == (
        400,
        "blueprint.yaml",
        True,
    )
    assert add(admin, ours, repository, path="list").status_code == 400
    for case, text in BAD_META.items():
        repository.commit({"list/blueprint.yaml": text})
        refused = add(admin, ours, repository, path="list")
        assert (refused.status_code, refused.json().get("file")) == (400, "blueprint.yaml"), case
    assert refusal(add(admin, ours, repository, name="demo"))[:2] == (409, "name")
    assert add(admin, ours, repository, name="Bad Name").status_code == 400
    assert OwnBlueprint.objects.count() == 0
    assert add(admin, ours, repository).status_code == 201
    assert refusal(add(admin, ours, repository))[:2] == (409, "name")
