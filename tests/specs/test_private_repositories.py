"""A private Git source: its token is sealed, goes to its own host only, and is in no file, log or page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from console.jobs.models import Job
from console.jobs.services import request_plan
from console.plans.services import request_deploy
from runner.git import fetch_files
from runner.outcome import StepFailed
from specs.models import OwnBlueprint, Revision, Spec
from tests.console_app import Console, Http
from tests.git_host import Repository, git_repository
from tests.people import Tenant
from tests.runner.installation import Installation, messages, wait_for_end
from tests.specs.editing import FILES, Browser, address, everything_stored, new_spec, post_spec, refusal
from tests.specs.test_the_demo_through_every_source import installation, plan_of

__all__ = ["installation"]

TOKEN = "glpat-0a1b2c3d4e5f6a7b8c9d"


@pytest.fixture
def private(tmp_path: Path, settings: Any) -> Iterator[Repository]:
    settings.SLIPWAY_GIT_ALLOWED_HOSTS = ["127.0.0.1"]
    with git_repository(tmp_path / "private", token=TOKEN) as served:
        served.commit(FILES)
        yield served


def git(repository: Repository, **more: Any) -> dict[str, Any]:
    return {"kind": "git", "url": repository.url, **more}


def test_without_its_token_a_private_repository_is_refused(
    console: Console, ours: Tenant, private: Repository
) -> None:
    api, browser = console.person(ours, "operator"), Browser(ours, ours.operator)
    for fields, words in (({}, "requires authentication"), ({"token": "wrong"}, "rejects this token")):
        status, field, detail = refusal(post_spec(api, ours, source=git(private, **fields)))
        assert (status, field) == (400, "source.token")
        assert words in detail
        form = {"source": "git", "url": private.url, "ref": "main", "name": "Shop", "then": "stay", **fields}
        answer = browser.post("specs/new/create", form)
        assert (answer.status_code, words in answer.content.decode()) == (400, True)
    for odd in ("two words", "new\nline", "", 7):
        answer = post_spec(api, ours, source=git(private, token=odd))
        assert refusal(answer)[:2] == (400, "source.token"), odd
    assert Spec.objects.count() == 0


def test_with_its_token_it_is_read_and_the_token_is_nowhere_to_be_seen(
    console: Console, ours: Tenant, private: Repository
) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours, source=git(private, token=TOKEN))
    source = Revision.objects.get(spec=spec).document["source"]
    assert len(source["credential"]) == 64
    assert TOKEN not in everything_stored()
    for path in ("", "/revisions/1", "/variables"):
        assert TOKEN not in api.get(address(spec, path)).text
    page = Browser(ours, ours.operator).reads("specs/shop/source/")
    assert "unchanged" in page
    assert TOKEN not in page
    private.commit({"main.tf": FILES["main.tf"] + "# more\n"})
    assert api.post("/api/jobs", json={"spec": str(spec.pk), "type": "PLAN"}).status_code == 202
    assert spec.revisions.count() == 2, "the ref was looked up again, with the sealed token"


def test_a_token_stays_with_its_address_and_nobody_takes_it_elsewhere(
    console: Console, ours: Tenant, private: Repository, tmp_path: Path
) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours, source=git(private, token=TOKEN))
    digest = Revision.objects.get(spec=spec).document["source"]["credential"]
    again = api.put(address(spec, "/source"), json={"source": git(private, ref="main", path="")})
    assert (again.status_code, again.json()["number"]) == (200, 1), "nothing changed"
    with git_repository(tmp_path / "elsewhere") as elsewhere:
        elsewhere.commit(FILES)
        for source in (git(elsewhere), git(elsewhere, credential=digest)):
            assert api.put(address(spec, "/source"), json={"source": source}).status_code == 200
            assert "credential" not in spec.revisions.latest("number").document["source"]
        assert set(elsewhere.host.authorizations) == {""}
    assert refusal(api.put(address(spec, "/source"), json={"source": git(private)}))[1] == "source.token"
    forged = git(private, credential=digest)
    assert refusal(post_spec(api, ours, name="other", source=forged))[1] == "source.token"
    assert api.post(address(spec, "/revisions/1/restore")).status_code == 200
    forgotten = api.put(address(spec, "/source"), json={"source": git(private, token="")})
    assert refusal(forgotten)[1] == "source.token"


def test_what_one_organization_may_read_is_not_anothers(
    console: Console, ours: Tenant, theirs: Tenant, private: Repository
) -> None:
    new_spec(console.person(ours, "operator"), ours, source=git(private, token=TOKEN))
    commit = Revision.objects.get().document["source"]["commit"]
    answer = post_spec(console.person(theirs, "operator"), theirs, source=git(private, ref=commit))
    assert refusal(answer)[:2] == (400, "source.token")


def test_a_redirect_to_another_host_does_not_get_the_token(
    console: Console, ours: Tenant, private: Repository, tmp_path: Path
) -> None:
    credentials: list[str | None] = []
    target = private.url

    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            credentials.append(self.headers.get("Authorization"))
            self.send_response(302)
            self.send_header("Location", target + self.path.removeprefix("/x.git"))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/x.git"
        source = {"kind": "git", "url": url, "token": TOKEN}
        answer = post_spec(console.person(ours, "operator"), ours, source=source)
        server.shutdown()
        thread.join()
    assert refusal(answer)[1] == "source.token"
    assert credentials and all(credentials), "the host that was named was told"
    assert set(private.host.authorizations) == {""}, "the one it leads to was not"


def test_a_blueprint_of_ones_own_may_be_private(console: Console, ours: Tenant, private: Repository) -> None:
    admin = console.person(ours, "admin")
    path = f"/api/organizations/{ours.organization.slug}/blueprints"
    body = {"name": "network", "url": private.url}
    assert refusal(admin.post(path, json=body))[1] == "source.token"
    added = admin.post(path, json={**body, "token": TOKEN})
    assert added.status_code == 201, added.text
    assert "token" not in added.json() and "credential" not in added.json()
    newer = private.commit({"main.tf": FILES["main.tf"] + "# more\n"})
    assert admin.post(f"{path}/network").json()["commit"] == newer
    page = Browser(ours, ours.admin)
    form = {"name": "second", "url": private.url, "ref": "main", "path": "", "token": TOKEN}
    assert page.post("blueprints/", form).status_code < 400
    assert OwnBlueprint.objects.count() == 2
    assert TOKEN not in everything_stored() + page.reads("blueprints/")


def test_the_runner_signs_in_and_says_when_that_fails(private: Repository) -> None:
    commit = private.commit({"main.tf": "# one\n"})
    for token in (TOKEN, f"somebody:{TOKEN}"):
        assert fetch_files(url=private.url, commit=commit, token=token)["main.tf"] == "# one\n"
    for refused, words in ((None, "asks for a sign-in"), ("old", "no longer accepts the Spec's token")):
        with pytest.raises(StepFailed, match=words) as failed:
            fetch_files(url=private.url, commit=commit, token=refused)
        assert failed.value.fatal


@pytest.mark.timeout(120)
def test_a_private_repository_is_planned_and_applied(
    console: Console,
    ours: Tenant,
    private: Repository,
    installation: Installation,
    start_runner: Callable[..., Any],
) -> None:
    """A configuration that looks for the token where it runs, and prints what it finds."""
    looking = """
        resource "terraform_data" "look" {
          provisioner "local-exec" { command = "env; cat .git/config ../*/.git/config 2>&1; echo looked" }
        }
    """
    private.commit({"main.tf": looking, "variables.tf": ""})
    runner = start_runner()
    api: Http = console.person(ours, "operator")
    spec = new_spec(api, ours, source=git(private, token=TOKEN))
    planned = wait_for_success(request_plan(spec=spec, requested_by=ours.operator))
    deployed = wait_for_success(request_deploy(plan=plan_of(planned), requested_by=ours.operator))
    assert any("looked" in line for line in messages(deployed))
    output = "\n".join([*messages(planned), *messages(deployed), runner.log])
    assert TOKEN not in output
    assert "(sensitive)" not in "\n".join(messages(deployed)), "there was nothing to mask"
    assert TOKEN not in everything_stored()


def wait_for_success(job: Job) -> Job:
    finished_job = wait_for_end(job)
    assert finished_job.status == "SUCCESS", messages(job)
    return finished_job
