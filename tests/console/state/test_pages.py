"""What the pages of state show and hide, and to whom."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from console.accounts.models import User
from console.audit.models import AuditEvent
from console.state.document import StateDocument
from console.state.models import Backend, StateLock, StateVersion
from console.state.services import import_state, read_state
from specs.services import change_variable
from tests.console.state.backend_client import state
from tests.console.state.documents import SECRET, after, before, resource, secret_at
from tests.page_source import source_of
from tests.people import Tenant

STATE = "/ours/specs/network/state/"


@pytest.fixture
def versions(ours: Tenant) -> None:
    import_state(spec=ours.spec, body=before(1), imported_by=ours.operator)
    import_state(spec=ours.spec, body=after(2), imported_by=ours.operator)


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return client


def text_of(client: Client, path: str, **query: Any) -> str:
    answer = client.get(path, query)
    assert answer.status_code == 200, answer.content
    return source_of(answer)


@pytest.mark.parametrize("path", ["", "1/", "2/", "compare", "compare?from=1&to=2"])
def test_no_page_holds_a_sensitive_value(ours: Tenant, versions: None, path: str) -> None:
    assert SECRET not in text_of(signed_in(ours.admin), STATE + path)


def test_the_list_of_versions_says_who_wrote_each(ours: Tenant, versions: None) -> None:
    page = text_of(signed_in(ours.viewer), STATE)
    assert "ours-operator uploaded it" in page
    assert "Roll back" not in page, "a viewer cannot"
    assert "Download" not in page
    assert "backend &quot;http&quot;" in page
    assert "Roll back" in text_of(signed_in(ours.admin), STATE)


def test_the_resources_are_a_tree_that_can_be_searched(ours: Tenant, versions: None) -> None:
    client = signed_in(ours.viewer)
    page = text_of(client, STATE + "1/")
    for words in (
        "module.network",
        "module.store",
        "aws_subnet.private[1]",
        "data.aws_ami.newest",
        "aws_vpc.main",
    ):
        assert words in page.replace("&quot;", '"')
    page = text_of(client, STATE + "1/", q="SUBNET")
    assert "aws_subnet.private[0]" in page
    assert "aws_vpc" not in page
    assert "No resources match" in text_of(client, STATE + "1/", q="nothing-like-this")
    assert "tainted" in text_of(client, STATE + "2/")
    # Revealing is of what the last deploy left, which need not be what this version has.
    assert "Reveal" not in text_of(signed_in(ours.operator), STATE + "1/")


def test_attributes_are_shown_with_what_is_sensitive_masked(ours: Tenant, versions: None) -> None:
    address = 'module.data["eu"].module.store.aws_db_instance.main'
    page = text_of(signed_in(ours.viewer), STATE + "1/resource", address=address)
    assert SECRET not in page
    assert page.count("(sensitive)") == 3, "marked, marked inside a list, and known by its name"
    assert "db-1" in page
    assert "platform" in page
    assert signed_in(ours.viewer).get(STATE + "1/resource", {"address": "no.such"}).status_code == 404


GIVEN = "given-as-sensitive-to-the-spec"


def with_copies(serial: int, size: str = "small") -> bytes:
    """A secret that is marked in one place only, and one that nothing in the state marks at all."""
    secret = resource(
        "terraform_data.one",
        {
            "input": {"value": SECRET, "type": "string"},
            "output": {"value": SECRET, "type": "string"},
            "url": f"https://me:{GIVEN}@example.com",
            "size": size,
        },
        sensitive_attributes=[secret_at("input")],
    )
    outputs = {"url": {"value": f"https://me:{GIVEN}@example.com/{size}", "type": "string"}}
    return state(serial, outputs=outputs, resources=[secret])


def test_a_secret_is_masked_where_nothing_marks_it(ours: Tenant) -> None:
    change_variable(
        spec=ours.spec, category="variables", name="name", value=GIVEN, sensitive=True, author=ours.operator
    )
    for serial, size in ((1, "small"), (2, "large")):
        import_state(spec=ours.spec, body=with_copies(serial, size), imported_by=ours.operator)
    viewer = signed_in(ours.viewer)
    opened = text_of(viewer, STATE + "1/resource", address="terraform_data.one")
    pages = [opened, *(text_of(viewer, STATE + path) for path in ("", "1/", "compare?from=1&to=2"))]
    assert all(SECRET not in page and GIVEN not in page for page in pages)
    assert "small" in opened
    assert opened.count("(sensitive)") == 3, "the input, its copy in the output, and the address"
    assert "string" in opened, "the type is no secret"


def test_the_difference_between_two_versions(ours: Tenant, versions: None) -> None:
    page = text_of(signed_in(ours.viewer), STATE + "compare?from=2&to=1").replace("&quot;", '"')
    assert SECRET not in page
    assert "5 resources differ" in page
    assert "aws_s3_bucket.logs" in page
    assert "aws_subnet.private" in page
    assert "aws_vpc" not in page, "it does not differ"
    assert "(sensitive, changed)" in page
    assert "db2.example.com" in page


def test_a_download_is_whole_and_on_record(ours: Tenant, versions: None) -> None:
    assert signed_in(ours.viewer).get(STATE + "1/download").status_code == 403
    answer = signed_in(ours.operator).get(STATE + "1/download")
    assert answer.content == before(1)
    event = AuditEvent.objects.get(action="state.downloaded")
    assert (event.actor_name, event.data["serial"]) == (ours.operator.username, 1)


def test_rolling_back_makes_a_new_version_of_the_old_content(ours: Tenant, versions: None) -> None:
    admin = signed_in(ours.admin)
    refused = admin.post(STATE + "1/roll-back", {"confirmation": "netwörk"})
    assert refused.status_code == 400
    assert StateVersion.objects.count() == 2
    assert (
        signed_in(ours.operator).post(STATE + "1/roll-back", {"confirmation": "network"}).status_code == 403
    )
    assert admin.post(STATE + "1/roll-back", {"confirmation": "network"}).status_code == 302
    restored = read_state(spec=ours.spec)
    assert restored is not None
    assert restored == before(1).replace(b'"serial": 1,\n  "lineage"', b'"serial": 3,\n  "lineage"')
    newest = StateVersion.objects.get(serial=3)
    assert (newest.restored_serial, newest.author) == (1, ours.admin)
    assert AuditEvent.objects.get(action="state.rolled_back").data == {"serial": 3, "restored_serial": 1}
    assert not StateLock.objects.exists()
    assert admin.post(STATE + "3/roll-back", {"confirmation": "network"}).status_code == 409


def test_a_locked_state_is_neither_rolled_back_nor_uploaded(ours: Tenant, versions: None) -> None:
    StateLock.objects.create(
        spec=ours.spec, lock_id="a", info={"ID": "a", "Who": "me@here"}, user=ours.operator
    )
    refused = signed_in(ours.admin).post(STATE + "1/roll-back", {"confirmation": "network"})
    assert refused.status_code == 423
    assert "ours-operator (me@here)" in source_of(refused)
    assert StateVersion.objects.count() == 2


def test_unlocking_by_force_takes_exactly_the_lock_that_was_seen(ours: Tenant, versions: None) -> None:
    StateLock.objects.create(spec=ours.spec, lock_id="a", info={"ID": "a"}, user=ours.operator)
    admin = signed_in(ours.admin)
    assert "Force-unlock" in text_of(admin, STATE)
    assert "Release the lock held by ours-operator" in text_of(admin, STATE + "unlock")
    assert admin.post(STATE + "unlock", {"lock_id": "older"}).status_code == 423
    assert signed_in(ours.second_operator).post(STATE + "unlock", {"lock_id": "a"}).status_code == 403
    assert admin.post(STATE + "unlock", {"lock_id": "a"}).status_code == 302
    assert not StateLock.objects.exists()


def test_an_uploaded_file_becomes_a_version_or_is_refused(ours: Tenant, tmp_path: Any) -> None:
    operator = signed_in(ours.operator)
    assert ours.spec.name == "network"

    def upload(client: Client, body: bytes) -> int:
        file = tmp_path / "terraform.tfstate"
        file.write_bytes(body)
        with file.open("rb") as opened:
            return client.post(STATE + "upload", {"file": opened}).status_code

    assert upload(signed_in(ours.viewer), state(5)) == 403
    assert upload(operator, b"not state") == 400
    assert upload(operator, state(5)) == 302
    assert upload(operator, state(4)) == 409
    assert upload(operator, state(6, lineage="another")) == 409
    assert [version.serial for version in StateVersion.objects.all()] == [5]
    assert operator.post(STATE + "upload").status_code == 400


def test_strangers_find_nothing(ours: Tenant, theirs: Tenant, versions: None) -> None:
    stranger = signed_in(theirs.admin)
    for path in (
        STATE,
        STATE + "1/",
        STATE + "compare",
        STATE + "1/download",
        "/ours/state/",
        STATE + "backend",
    ):
        assert stranger.get(path).status_code == 404
    assert stranger.post(STATE + "1/roll-back", {"confirmation": "network"}).status_code == 404


def test_the_overview_lists_every_spec_with_its_lock(ours: Tenant, versions: None) -> None:
    ours.new_spec("other")
    StateLock.objects.create(spec=ours.spec, lock_id="a", info={"ID": "a"}, user=ours.operator)
    page = text_of(signed_in(ours.viewer), "/ours/state/")
    assert "network" in page
    assert "other" in page
    assert "ours-operator" in page


def test_a_backend_is_chosen_by_an_admin_and_its_secrets_are_not_shown_again(ours: Tenant) -> None:
    admin = signed_in(ours.admin)
    assert ours.spec.name == "network"
    form = {
        "kind": "s3",
        "settings": 'bucket = "states"\nregion = eu-west-1\nuse_lockfile = true\n',
        "environment": "AWS_ACCESS_KEY_ID = id\nAWS_SECRET_ACCESS_KEY = hidden-value",
    }
    assert signed_in(ours.operator).post(STATE + "backend", form).status_code == 403
    assert admin.post(STATE + "backend", form).status_code == 302
    backend = Backend.objects.get(spec=ours.spec)
    assert backend.settings == {"bucket": "states", "region": "eu-west-1", "use_lockfile": True}
    assert b"hidden-value" not in bytes(backend.sealed_environment or b"")
    page = text_of(admin, STATE + "backend")
    assert "AWS_SECRET_ACCESS_KEY" in page
    assert "hidden-value" not in page
    assert "Amazon S3" in text_of(admin, STATE)
    for event in AuditEvent.objects.filter(action="state.backend_chosen"):
        assert "hidden-value" not in json.dumps(event.data)


def test_the_serial_is_changed_in_its_own_place_only() -> None:
    inside = b'"resources": [{"serial": 7, "mode": "managed", "type": "a", "name": "b", "instances": []}]'
    body = b"{" + inside + b', "version": 4, "serial": 7, "lineage": "x"}'
    changed = StateDocument.read(body).with_serial(12)
    assert changed.body == body.replace(b'4, "serial": 7', b'4, "serial": 12')
