"""A Git host on 127.0.0.1 that speaks smart HTTP, and a repository on it."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from wsgiref.simple_server import make_server

from dulwich import porcelain
from dulwich.repo import Repo
from dulwich.server import BackendRepo, DictBackend
from dulwich.web import WSGIRequestHandlerLogger, make_wsgi_chain

AUTHOR = b"A test <test@localhost>"


class _Handler(WSGIRequestHandlerLogger):
    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: the suite's output is about tests."""


@dataclass(frozen=True)
class Repository:
    """One repository: commits are made in its folder, and read over HTTP."""

    folder: Path
    url: str
    host: Guarded

    def commit(self, files: dict[str, str], message: str = "A change") -> str:
        """Write these files and commit everything; returns the commit."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        with Repo(str(self.folder)) as repository:
            porcelain.add(repository, [str(self.folder / name) for name in files])
            commit_id = porcelain.commit(
                repository, message.encode(), author=AUTHOR, committer=AUTHOR, sign=False
            )
            return str(commit_id.decode())

    def tag(self, name: str) -> None:
        with Repo(str(self.folder)) as repository:
            porcelain.tag_create(
                repository, name.encode(), author=AUTHOR, message=b"A tag", annotated=True, sign=False
            )


class Guarded:
    """A Git host in front of which people sign in; remembers who came with what."""

    def __init__(self, served: Any, *, token: str) -> None:
        self._served = served
        self._token = token
        self.authorizations: list[str] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        authorization = environ.get("HTTP_AUTHORIZATION", "")
        self.authorizations.append(authorization)
        if self._token and not self._opens(authorization):
            start_response("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="git"')])
            return [b"sign in"]
        return self._served(environ, start_response)

    def _opens(self, authorization: str) -> bool:
        kind, _, encoded = authorization.partition(" ")
        return kind == "Basic" and base64.b64decode(encoded).decode().endswith(f":{self._token}")


@contextmanager
def git_repository(folder: Path, *, token: str = "") -> Iterator[Repository]:
    """An empty repository with the branch `main`, served for this block; with a token, to its bearer only.

    One request at a time: two that read the same pack would each open it, and one of them would be left open.
    """
    folder.mkdir(parents=True)
    with Repo.init(str(folder), default_branch=b"main") as repository:
        served: dict[str, BackendRepo] = {"/infrastructure.git": repository}
        chain = Guarded(make_wsgi_chain(DictBackend(served)), token=token)
        server = make_server("127.0.0.1", 0, chain, handler_class=_Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield Repository(folder, f"http://127.0.0.1:{server.server_port}/infrastructure.git", chain)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
