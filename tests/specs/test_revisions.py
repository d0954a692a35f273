"""The history of a Spec: compared side by side, and restored."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from specs.comparison import ADDED, CHANGED, GAP, REMOVED, SAME, compare_texts
from tests.console_app import Console
from tests.git_host import Repository
from tests.people import Tenant
from tests.specs.editing import FILES, address, new_spec

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "x = 1"]), max_size=25).map("\n".join)


@settings(max_examples=60, deadline=None)
@given(LINES, LINES)
def test_both_sides_of_a_comparison_are_there_with_their_numbers(before: str, after: str) -> None:
    old_lines, new_lines = before.splitlines(), after.splitlines()
    rows = compare_texts(before, after)
    for row in rows:
        assert row.left_number is None or old_lines[row.left_number - 1] == row.left
        assert row.right_number is None or new_lines[row.right_number - 1] == row.right
        assert (
            row.kind in (SAME, GAP)
            or row.left_number is None
            or row.right_number is None
            or row.kind == CHANGED
        )
    visible_rows = [row for row in rows if row.kind != GAP]
    untouched_left = {n + 1 for n in range(len(old_lines))} - {row.left_number for row in visible_rows}
    untouched_right = {n + 1 for n in range(len(new_lines))} - {row.right_number for row in visible_rows}
    assert [old_lines[n - 1] for n in sorted(untouched_left)] == [
        new_lines[n - 1] for n in sorted(untouched_right)
    ]
    assert bool(rows) == (old_lines != new_lines)


def test_far_lines_are_left_out_and_the_change_is_in_the_middle() -> None:
    before = "\n".join(f"line {n}" for n in range(1, 41))
    rows = compare_texts(before, before.replace("line 20\n", "line twenty\nand more\n"))
    assert [row.kind for row in rows] == [GAP, SAME, SAME, SAME, CHANGED, ADDED, SAME, SAME, SAME]
    assert (rows[4].left_number, rows[4].left, rows[4].right) == (20, "line 20", "line twenty")


def test_files_and_variables_of_two_revisions_are_compared(console: Console, ours: Tenant) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours, variables={"size": 1}, sensitive_variables={"password": "first-secret"})
    files = {
        "main.tf": FILES["main.tf"].replace("var.size", "var.size + 1"),
        "variables.tf": FILES["variables.tf"],
    }
    source = {"kind": "inline", "files": {**files, "more.tf": "locals {}\n"}}
    api.put(address(spec, "/source"), json={"source": source})
    api.put(address(spec, "/variables/size"), json={"value": 2})
    api.put(address(spec, "/variables/password"), json={"value": "second-secret"})
    api.put(address(spec, "/variables/zones"), json={"value": ["b"]})
    comparison = api.get(address(spec, "/revisions/compare?from=1&to=5")).json()
    assert [(change["name"], change["kind"]) for change in comparison["files"]] == [
        ("main.tf", CHANGED),
        ("more.tf", ADDED),
    ]
    changed_rows = [row for row in comparison["files"][0]["rows"] if row[0] == CHANGED]
    assert changed_rows[0] == [CHANGED, 2, "  input = var.size", 2, "  input = var.size + 1"]
    variables = {change["name"]: change for change in comparison["variables"]}
    assert (variables["size"]["before"], variables["size"]["after"]) == (1, 2)
    assert (variables["zones"]["kind"], variables["zones"]["after"]) == (ADDED, ["b"])
    assert (variables["password"]["sensitive"], variables["password"]["before"]) == (True, None)
    assert "secret" not in str(variables["password"]).replace("secrets", "")
    backwards = api.get(address(spec, "/revisions/compare?from=5&to=1")).json()
    assert {change["name"]: change["kind"] for change in backwards["files"]} == {
        "main.tf": CHANGED,
        "more.tf": REMOVED,
    }


def test_restoring_brings_back_files_variables_and_secrets(console: Console, ours: Tenant) -> None:
    api = console.person(ours, "operator")
    spec = new_spec(api, ours, variables={"size": 1}, sensitive_variables={"password": "first-secret"})
    api.put(address(spec, "/variables/size"), json={"value": 2})
    api.delete(address(spec, "/variables/password"))
    restored = api.post(address(spec, "/revisions/1/restore")).json()
    assert (restored["number"], restored["message"]) == (4, "Restored revision 1")
    first, last = spec.revisions.get(number=1), spec.revisions.get(number=4)
    assert last.document == first.document
    assert last.document_sha256 == first.document_sha256
    assert spec.revisions.count() == 4


def test_revisions_of_a_git_source_are_compared_by_their_files(
    console: Console, ours: Tenant, repository: Repository
) -> None:
    first = repository.commit(FILES)
    api = console.person(ours, "operator")
    spec = new_spec(api, ours, source={"kind": "git", "url": repository.url})
    second = repository.commit({"main.tf": "# nothing\n"})
    api.put(address(spec, "/source"), json={"source": {"kind": "git", "url": repository.url}})
    comparison = api.get(address(spec, "/revisions/compare?from=1&to=2")).json()
    assert comparison["source"] == {"commit": {"before": first, "after": second}}
    assert [change["name"] for change in comparison["files"]] == ["main.tf"]
