"""Fetching a Git source: exactly the commit that the snapshot names, with bounds."""

from __future__ import annotations

from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from runner.git_pack import PackTooLarge, check_pack
from runner.outcome import StepFailed
from runner.protocol import git_login

if TYPE_CHECKING:
    from dulwich.object_store import MemoryObjectStore
    from dulwich.objects import ObjectID

MAX_FILES = 20_000
MAX_BYTES = 256 * 1024 * 1024
#: The most that a pack may expand to in memory: a megabyte can become a thousand.
MAX_OBJECT_BYTES = 256 * 1024 * 1024
SPOOL_BYTES = 8 * 1024 * 1024
TIMEOUT_SECONDS = 60
#: The modes of a link and of another repository in a tree. Any other entry is a file, also with the modes of
#: old programs.
LINK, SUBMODULE = 0o120000, 0o160000

# dulwich is imported where it is used: most jobs have no Git source, and an idle runner stays small.


def fetch_files(*, url: str, commit: str, token: str | None = None) -> dict[str, str]:
    """Return every file of the repository at the commit. Bytes that are not UTF-8 survive as they are."""
    from dulwich.objects import ObjectID

    commit_id = ObjectID(commit.encode())
    return dict(_files_of(_fetch(url, commit_id, token), commit_id))


def _fetch(url: str, commit: ObjectID, token: str | None) -> MemoryObjectStore:
    """Fetch one commit, or the whole history of all refs where the server offers nothing else."""
    from dulwich.client import HTTPUnauthorized
    from dulwich.errors import FileFormatException, GitProtocolError, NotGitRepository
    from urllib3.exceptions import HTTPError

    try:
        try:
            return _receive(url, [commit], token)
        except GitProtocolError:
            store = _receive(url, None, token)
            if commit not in store:
                raise
            return store
    except HTTPUnauthorized as error:
        problem = "no longer accepts the Spec's token" if token else "asks for a sign-in"
        raise StepFailed(
            "git_failed",
            f"{url} {problem}. Give the source of the Spec a token that may read it.",
            fatal=True,
        ) from error
    except NotGitRepository as error:
        raise StepFailed(
            "git_failed", f"There is no Git repository at {url}, or it needs a sign-in."
        ) from error
    except PackTooLarge as error:
        raise _too_large() from error
    except (GitProtocolError, FileFormatException, HTTPError, OSError, KeyError, ValueError) as error:
        raise StepFailed(
            "git_failed", f"Commit {commit.decode()[:12]} cannot be fetched from {url}: {error}"
        ) from error


def _receive(url: str, wants: list[ObjectID] | None, token: str | None) -> MemoryObjectStore:
    from dulwich.client import HttpGitClient
    from dulwich.object_store import MemoryObjectStore
    from dulwich.repo import MemoryRepo

    parts, store = urlsplit(url), MemoryObjectStore()
    # In a header of the requests to this origin only: not in the address, not in the environment.
    name, password = git_login(token) if token else (None, None)
    client = HttpGitClient(
        f"{parts.scheme}://{parts.netloc}", timeout=TIMEOUT_SECONDS, username=name, password=password
    )
    answers: list[Any] = []
    manager: Any = client.pool_manager
    opened = manager.urlopen

    def open_and_remember(*arguments: Any, **options: Any) -> Any:
        answers.append(answer := opened(*arguments, **options))
        return answer

    manager.urlopen = open_and_remember
    with SpooledTemporaryFile[bytes](max_size=SPOOL_BYTES) as pack:

        def keep(data: bytes) -> int:
            if pack.tell() + len(data) > MAX_BYTES:
                raise _too_large()
            return pack.write(data)

        try:
            client.fetch_pack(
                parts.path.encode(),
                lambda refs, depth=None: list(refs.values()) if wants is None else wants,
                MemoryRepo().get_graph_walker(),
                keep,
                depth=None if wants is None else 1,
            )
        finally:
            for answer in answers:
                answer.close()  # nobody reads one that was refused half-way
            manager.clear()
        check_pack(pack, limit_bytes=MAX_OBJECT_BYTES)
        _unpack(pack, store)
    return store


def _unpack(pack: Any, store: MemoryObjectStore) -> None:
    incoming, commit, abort = store.add_pack()
    pack.seek(0)
    try:
        while chunk := pack.read(SPOOL_BYTES):
            incoming.write(chunk)
    except BaseException:
        abort()
        raise
    commit()


def _files_of(store: MemoryObjectStore, commit_id: ObjectID) -> Iterator[tuple[str, str]]:
    from dulwich.object_store import iter_tree_contents
    from dulwich.objects import Commit

    commit = store[commit_id]
    if not isinstance(commit, Commit):
        raise StepFailed("git_failed", f"{commit_id.decode()[:12]} is not a commit.", fatal=True)
    size = 0
    for number, entry in enumerate(iter_tree_contents(store, commit.tree)):
        path = (entry.path or b"").decode("utf-8", "surrogateescape")
        if entry.mode == LINK:
            raise StepFailed("git_failed", f"{path!r} is a link. Only ordinary files are used.", fatal=True)
        if entry.mode == SUBMODULE or entry.sha is None:
            continue  # it is another repository
        content = store[entry.sha].as_raw_string()
        size += len(content)
        if number >= MAX_FILES or size > MAX_BYTES:
            raise _too_large()
        yield path, content.decode("utf-8", "surrogateescape")


def _too_large() -> StepFailed:
    return StepFailed("git_failed", "The repository is too large to be used as a source.", fatal=True)
