"""Git sources: resolve a ref to a commit, and read the files at it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import TypeVar
from urllib.parse import urlsplit

from dulwich.client import HttpGitClient, HTTPUnauthorized
from dulwich.errors import GitProtocolError, NotGitRepository
from dulwich.object_store import MemoryObjectStore, iter_tree_contents
from dulwich.objects import Commit, ObjectID, Tag
from dulwich.refs import Ref
from dulwich.repo import MemoryRepo
from urllib3.exceptions import HTTPError, MaxRetryError

from console.errors import BadInput
from runner.git_pack import NotAPack, PackTooLarge, check_pack
from runner.protocol import git_login
from specs.configuration import MAX_FILES, MAX_TOTAL_BYTES
from specs.git_network import AddressRefused, check_address, pool_manager
from specs.variables import open_secret

COMMIT = re.compile(r"^[0-9a-f]{40}$")
#: The modes of a tree's entries that are not files.
LINK, SUBMODULE = 0o120000, 0o160000
TIMEOUT_SECONDS = 20
#: Limits for one commit of a repository: the pack as sent, and its objects unpacked.
MAX_PACK_BYTES = 32 * 1024 * 1024
MAX_OBJECT_BYTES = 96 * 1024 * 1024
SPOOL_BYTES = 4 * 1024 * 1024
MAX_TOKEN_CHARS = 2_000

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class GitSource:
    url: str
    ref: str
    path: str = ""
    #: The token of a private repository, as typed or as the digest of the sealed one. Both take part in
    #: comparisons, so that cached files of one organization never serve another.
    token: str = field(default="", repr=False)
    credential: str = ""


def check_source(source: GitSource) -> None:
    """Refuse URLs with credentials or other schemes, and hosts inside our own network."""
    try:
        check_address(source.url)
    except AddressRefused as error:
        raise _unusable_address(str(error)) from error
    if urlsplit(source.url).query or urlsplit(source.url).fragment:
        raise _unusable_address(
            "it has a query or a fragment; give the branch as the ref and the folder as the path"
        )
    if ".." in source.path.split("/") or source.path.startswith("/") or "\\" in source.path:
        raise BadInput(
            "The path must be relative to the repository, without a leading / and without `..`.",
            field="source.path",
        )
    if not source.ref or source.ref.startswith("-") or re.search(r"[\s~^:?*\[\\\x00-\x1f]", source.ref):
        raise BadInput(
            f"{source.ref!r} is not a branch, tag or commit. Give the name of one.", field="source.ref"
        )


def normalize_token(token: object) -> str:
    """Return the token as it goes into a header, or an empty text for none."""
    if token in (None, ""):
        return ""
    text = token.strip() if isinstance(token, str) else ""
    if not text or len(text) > MAX_TOKEN_CHARS or not all("!" <= char <= "~" for char in text):
        raise BadInput(
            "The token has characters that are not allowed, such as spaces. Copy it from the Git "
            "host, or enter name:password.",
            field="source.token",
        )
    return text


def resolve(source: GitSource) -> str:
    """Return the commit that the ref points to."""
    check_source(source)
    if COMMIT.match(source.ref):
        return source.ref
    refs = _ask_host(source, lambda client, path: client.get_refs(path).refs)
    for name in (
        f"refs/heads/{source.ref}",
        f"refs/tags/{source.ref}^{{}}",
        f"refs/tags/{source.ref}",
        source.ref,
    ):
        if commit := refs.get(Ref(name.encode())):
            return str(commit.decode())
    raise BadInput(
        f"The repository has no branch, tag or commit {source.ref!r}. Check the ref.", field="source.ref"
    )


def read_files(source: GitSource, commit: str) -> dict[str, str]:
    """Return the files below the source's path at a commit."""
    check_source(source)
    commit_id = ObjectID(commit.encode())
    store = _fetch(source, commit_id)
    if commit_id not in store:
        raise _no_commit(commit)
    entry = store[commit_id]
    while isinstance(entry, Tag):
        entry = store[entry.object[1]]
    if not isinstance(entry, Commit):
        raise _no_commit(commit)
    return _files(store, entry, source.path.strip("/"))


def _fetch(source: GitSource, commit_id: ObjectID) -> MemoryObjectStore:
    """Fetch one commit, or everything from a server that only serves the heads of its refs."""
    try:
        return _ask_host(source, lambda client, path: _receive(client, path, [commit_id]))
    except BadInput:
        return _ask_host(source, lambda client, path: _receive(client, path, None))


def _receive(client: HttpGitClient, path: bytes, commit_ids: list[ObjectID] | None) -> MemoryObjectStore:
    with SpooledTemporaryFile[bytes](max_size=SPOOL_BYTES) as pack:

        def keep(data: bytes) -> int:
            if pack.tell() + len(data) > MAX_PACK_BYTES:
                raise PackTooLarge
            return pack.write(data)

        client.fetch_pack(
            path,
            lambda refs, depth=None: list(refs.values()) if commit_ids is None else commit_ids,
            MemoryRepo().get_graph_walker(),
            keep,
            depth=None if commit_ids is None else 1,
        )
        check_pack(pack, limit_bytes=MAX_OBJECT_BYTES)
        return _unpack(pack)


def _unpack(pack: SpooledTemporaryFile[bytes]) -> MemoryObjectStore:
    store = MemoryObjectStore()
    incoming, commit, abort = store.add_pack()
    pack.seek(0)
    try:
        copyfileobj(pack, incoming)
    except BaseException:
        abort()
        raise
    commit()
    return store


def _files(store: MemoryObjectStore, commit: Commit, folder: str) -> dict[str, str]:
    prefix = f"{folder}/" if folder else ""
    files: dict[str, str] = {}
    size = 0
    for entry in iter_tree_contents(store, commit.tree):
        path = (entry.path or b"").decode("utf-8", "replace")
        if entry.mode == LINK:
            raise _link_refused(path)
        if not path.startswith(prefix) or entry.mode == SUBMODULE or entry.sha is None:
            continue
        content = store[entry.sha].as_raw_string()
        size += len(content)
        if size > MAX_TOTAL_BYTES or len(files) >= MAX_FILES:
            raise BadInput(
                f"The folder has more than {MAX_TOTAL_BYTES // 1024 // 1024} MiB or {MAX_FILES} files. "
                "Choose a deeper path.",
                field="source.path",
            )
        files[path.removeprefix(prefix)] = content.decode("utf-8", "replace").replace("\0", "\ufffd")
    if not files:
        raise BadInput(
            f"There are no files below {folder or '/'!r} at {commit.id.decode()[:12]}. Check the path.",
            field="source.path",
        )
    return files


def _ask_host(source: GitSource, request: Callable[[HttpGitClient, bytes], Answer]) -> Answer:
    parts = urlsplit(source.url)
    manager = pool_manager(source.url)
    token = source.token or (open_secret(source.credential) if source.credential else "")
    # Sent to this origin only: dulwich leaves it out when a redirect leads to another.
    name, password = git_login(token) if token else (None, None)
    client = HttpGitClient(
        f"{parts.scheme}://{parts.netloc}",
        pool_manager=manager,
        timeout=TIMEOUT_SECONDS,
        username=name,
        password=password,
    )
    try:
        return request(client, parts.path.encode())
    except HTTPUnauthorized as error:
        raise _sign_in_refused(has_token=bool(token)) from error
    except NotGitRepository as error:
        raise _unusable_address("there is no Git repository there, or it requires authentication") from error
    except PackTooLarge as error:
        raise _unusable_address(
            f"one commit of the repository is larger than {MAX_OBJECT_BYTES // 1024 // 1024} MiB"
        ) from error
    except MaxRetryError as error:
        raise _unusable_address(
            f"{parts.netloc} does not answer; check the address, or try again later"
        ) from error
    except (GitProtocolError, HTTPError, OSError, KeyError, AddressRefused, NotAPack) as error:
        raise _unusable_address(f"it cannot be read: {error}") from error
    finally:
        manager.clear()


def _sign_in_refused(*, has_token: bool) -> BadInput:
    answer = "rejects this token" if has_token else "requires authentication"
    return BadInput(
        f"The Git host {answer}. Give a token that may read the repository.", field="source.token"
    )


def _link_refused(path: str) -> BadInput:
    """Refuse a link anywhere in the repository: runners unpack all of it, and create no links."""
    return BadInput(
        f"{path!r} in the repository is a link. Only regular files are used: replace it by a copy.",
        field="source.path",
        file=path,
    )


def _no_commit(commit: str) -> BadInput:
    return BadInput(f"The repository has no commit {commit[:12]}. Check the ref.", field="source.ref")


def _unusable_address(why: str) -> BadInput:
    return BadInput(f"The Git address cannot be used: {why}.", field="source.url")
