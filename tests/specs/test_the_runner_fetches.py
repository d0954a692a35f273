"""The runner's side of a Git source: exactly the pinned commit, and a sentence when that cannot be."""

from __future__ import annotations

import pytest
from dulwich import porcelain
from dulwich.objects import Blob, ObjectID, Tree
from dulwich.repo import Repo

from console.errors import BadInput
from runner import git
from runner.git import fetch_files
from runner.outcome import StepFailed
from specs.git import GitSource, read_files
from tests.git_host import AUTHOR, Repository


def test_the_commit_is_fetched_also_when_the_branch_has_moved_on(repository: Repository) -> None:
    first = repository.commit({"main.tf": "# one\n", "modules/net/main.tf": "# net\n"})
    second = repository.commit({"main.tf": "# two\n"})
    assert fetch_files(url=repository.url, commit=first)["main.tf"] == "# one\n"
    assert fetch_files(url=repository.url, commit=second) == {
        "main.tf": "# two\n",
        "modules/net/main.tf": "# net\n",
    }


def test_what_is_not_text_survives(repository: Repository) -> None:
    repository.commit({"main.tf": ""})
    (repository.folder / "data.bin").write_bytes(b"\xff\x00\xfe")
    with Repo(str(repository.folder)) as opened:
        porcelain.add(opened, [str(repository.folder / "data.bin")])
        commit = porcelain.commit(opened, b"bytes", author=AUTHOR, committer=AUTHOR, sign=False).decode()
    fetched = fetch_files(url=repository.url, commit=commit)["data.bin"]
    assert fetched.encode("utf-8", "surrogateescape") == b"\xff\x00\xfe"


def test_what_cannot_be_fetched_is_said(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = repository.commit({"main.tf": "# " + "x" * 1_000})
    with pytest.raises(StepFailed, match="There is no Git repository"):
        fetch_files(url=repository.url.replace("infrastructure", "elsewhere"), commit=commit)
    with pytest.raises(StepFailed, match="cannot be fetched"):
        fetch_files(url=repository.url, commit="1" * 40)
    with pytest.raises(StepFailed, match="cannot be fetched"):
        fetch_files(url="http://127.0.0.1:1/x.git", commit=commit)
    monkeypatch.setattr(git, "MAX_BYTES", 500)
    with pytest.raises(StepFailed, match="too large"):
        fetch_files(url=repository.url, commit=commit)


def test_what_would_unpack_to_more_than_there_is_room_for_is_not_unpacked(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few kilobytes on the wire; unpacked they would be in memory, beside the applies of other slots."""
    commit = repository.commit({"main.tf": "#" * 5_000_000})
    monkeypatch.setattr(git, "MAX_OBJECT_BYTES", 1_000_000)
    with pytest.raises(StepFailed, match="too large"):
        fetch_files(url=repository.url, commit=commit)


def test_a_file_with_the_mode_of_an_old_program_is_a_file(repository: Repository) -> None:
    repository.commit({"main.tf": ""})
    with Repo(str(repository.folder)) as opened:
        blob, tree = Blob.from_string(b"# written long ago\n"), Tree()
        tree.add(b"main.tf", 0o100664, blob.id)
        tree.add(b"vendored", 0o160000, ObjectID(b"1" * 40))
        opened.object_store.add_objects([(blob, None), (tree, None)])
        commit = opened.get_worktree().commit(
            message=b"old", tree=tree.id, author=AUTHOR, committer=AUTHOR, sign=False
        )
    expected = {"main.tf": "# written long ago\n"}
    assert fetch_files(url=repository.url, commit=commit.decode()) == expected
    assert read_files(GitSource(repository.url, "main", ""), commit.decode()) == expected


def test_a_link_is_refused_at_the_door_and_by_the_runner(repository: Repository) -> None:
    repository.commit({"env/main.tf": "locals {}\n"})
    (repository.folder / "main.tf").symlink_to("/etc/passwd")
    with Repo(str(repository.folder)) as opened:
        porcelain.add(opened, [str(repository.folder / "main.tf")])
        commit = porcelain.commit(opened, b"link", author=AUTHOR, committer=AUTHOR, sign=False).decode()
    with pytest.raises(StepFailed, match=r"'main\.tf' is a link"):
        fetch_files(url=repository.url, commit=commit)
    with pytest.raises(BadInput, match=r"'main\.tf' in the repository is a link"):
        read_files(GitSource(repository.url, "main", "env"), commit)
