"""Git sources: which commit a ref is, and the files at it."""

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
#: Of a tree's entries, those that are no files.
LINK, SUBMODULE = 0o120000, 0o160000
TIMEOUT_SECONDS = 20
#: What one commit of a repository may be: as it is sent, and as it is.
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
    #: What opens a private repository: as it was typed, or the digest of the sealed one. Both are a part of
    #: what is compared: files that one organization may read are not another's.
    token: str = field(default="", repr=False)
    credential: str = ""


def check_source(source: GitSource) -> None:
    """Refuse addresses that carry credentials, other schemes, and addresses inside our own network."""
    try:
        check_address(source.url)
    except AddressRefused as error:
        raise _refused(str(error)) from error
    if urlsplit(source.url).query or urlsplit(source.url).fragment:
        raise _refused("it has a query or a fragment; give the branch as the ref and the folder as the path")
    if ".." in source.path.split("/") or source.path.startswith("/") or "\\" in source.path:
        raise BadInput("The path is inside the repository: no leading / and no `..`.", field="source.path")
    if not source.ref or source.ref.startswith("-") or re.search(r"[\s~^:?*\[\\\x00-\x1f]", source.ref):
        raise BadInput(
            f"{source.ref!r} is not a branch, tag or commit. Give the name of one.", field="source.ref"
        )


def checked_token(token: object) -> str:
    """A token as it may go into a header; empty for none."""
    if token in (None, ""):
        return ""
    text = token.strip() if isinstance(token, str) else ""
    if not text or len(text) > MAX_TOKEN_CHARS or not all("!" <= char <= "~" for char in text):
        raise BadInput(
            "The token has letters, digits and signs, and no spaces: give it as the Git host shows it, or as "
            "name:password.",
            field="source.token",
        )
    return text


def resolve(source: GitSource) -> str:
    """The commit that the ref is now."""
    check_source(source)
    if COMMIT.match(source.ref):
        return source.ref
    refs = _speak(source, lambda client, path: client.get_refs(path).refs)
    for name in (
        f"refs/heads/{source.ref}",
        f"refs/tags/{source.ref}^{{}}",
        f"refs/tags/{source.ref}",
        source.ref,
    ):
        if found := refs.get(Ref(name.encode())):
            return str(found.decode())
    raise BadInput(
        f"The repository has no branch, tag or commit {source.ref!r}. Look at the ref.", field="source.ref"
    )


def read_files(source: GitSource, commit: str) -> dict[str, str]:
    """The files below the source's path at a commit, for reading what the configuration declares."""
    check_source(source)
    wanted = ObjectID(commit.encode())
    store = _fetch(source, wanted)
    if wanted not in store:
        raise _no_commit(commit)
    found = store[wanted]
    while isinstance(found, Tag):
        found = store[found.object[1]]
    if not isinstance(found, Commit):
        raise _no_commit(commit)
    return _files(store, found, source.path.strip("/"))


def _fetch(source: GitSource, wanted: ObjectID) -> MemoryObjectStore:
    """The one commit; where the server gives out only what its refs are at, their whole history."""
    try:
        return _speak(source, lambda client, path: _receive(client, path, [wanted]))
    except BadInput:
        return _speak(source, lambda client, path: _receive(client, path, None))


def _receive(client: HttpGitClient, path: bytes, wants: list[ObjectID] | None) -> MemoryObjectStore:
    with SpooledTemporaryFile[bytes](max_size=SPOOL_BYTES) as pack:

        def keep(data: bytes) -> int:
            if pack.tell() + len(data) > MAX_PACK_BYTES:
                raise PackTooLarge
            return pack.write(data)

        client.fetch_pack(
            path,
            lambda refs, depth=None: list(refs.values()) if wants is None else wants,
            MemoryRepo().get_graph_walker(),
            keep,
            depth=None if wants is None else 1,
        )
        check_pack(pack, limit_bytes=MAX_OBJECT_BYTES)
        return _unpacked(pack)


def _unpacked(pack: SpooledTemporaryFile[bytes]) -> MemoryObjectStore:
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
            raise _link(path)
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
            f"There are no files below {folder or '/'!r} at {commit.id.decode()[:12]}. Look at the path.",
            field="source.path",
        )
    return files


def _speak(source: GitSource, say: Callable[[HttpGitClient, bytes], Answer]) -> Answer:
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
        return say(client, parts.path.encode())
    except HTTPUnauthorized as error:
        raise _no_entry(has_token=bool(token)) from error
    except NotGitRepository as error:
        raise _refused("there is no Git repository there, or it needs a sign-in") from error
    except PackTooLarge as error:
        raise _refused(
            f"one commit of the repository is larger than {MAX_OBJECT_BYTES // 1024 // 1024} MiB"
        ) from error
    except MaxRetryError as error:
        raise _refused(f"{parts.netloc} does not answer; look at the address, or try again later") from error
    except (GitProtocolError, HTTPError, OSError, KeyError, AddressRefused, NotAPack) as error:
        raise _refused(f"it cannot be read: {error}") from error
    finally:
        manager.clear()


def _no_entry(*, has_token: bool) -> BadInput:
    said = "does not take this token" if has_token else "asks for a sign-in"
    return BadInput(f"The Git host {said}. Give a token that may read the repository.", field="source.token")


def _link(path: str) -> BadInput:
    """Wherever it is: a runner has the whole repository, and makes no links."""
    return BadInput(
        f"{path!r} in the repository is a link. Only ordinary files are used: put a copy in its place.",
        field="source.path",
        file=path,
    )


def _no_commit(commit: str) -> BadInput:
    return BadInput(f"The repository has no commit {commit[:12]}. Look at the ref.", field="source.ref")


def _refused(why: str) -> BadInput:
    return BadInput(f"The Git address cannot be used: {why}.", field="source.url")
