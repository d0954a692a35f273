"""Refusals of the console's Git client: redirects to internal hosts, changing names, endless packs."""

from __future__ import annotations

import io
import socket
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from console.errors import BadInput
from runner.git_pack import NotAPack, PackTooLarge, check_pack
from specs import git, git_network
from specs.git import GitSource, read_files, resolve
from specs.git_network import AddressRefused, check_address, is_public, pool_manager
from tests.git_host import Repository


@pytest.fixture
def redirecting(settings: Any) -> Iterator[tuple[str, list[str]]]:
    """A host that an operator has allowed, and that sends everybody to where only it may be reached."""
    settings.SLIPWAY_GIT_ALLOWED_HOSTS = ["localhost"]
    requested_paths: list[str] = []

    class Redirect(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested_paths.append(self.path)
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{server.server_port}/metadata")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Redirect)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://localhost:{server.server_port}/x.git", requested_paths
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_redirect_to_an_internal_address_is_not_followed(redirecting: tuple[str, list[str]]) -> None:
    url, requested_paths = redirecting
    with pytest.raises(BadInput, match=r"plain http is allowed only|internal address"):
        resolve(GitSource(url, "main"))
    assert requested_paths == ["/x.git/info/refs?service=git-upload-pack"]


def test_a_name_that_changes_after_it_was_checked_reaches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check hears a public address, the connection another one."""
    with socket.create_server(("127.0.0.1", 0)) as inside:
        monkeypatch.setattr(git_network, "_require_public", lambda host: None)
        url = f"https://localhost:{inside.getsockname()[1]}/x.git"
        check_address(url)
        manager = pool_manager(url)
        with pytest.raises(AddressRefused, match="internal address"):
            manager.request("GET", url)
        manager.clear()


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


def pack_of(*blobs: bytes) -> io.BytesIO:
    entries = [_header(len(blob)) + zlib.compress(blob) for blob in blobs]
    return io.BytesIO(b"PACK" + (2).to_bytes(4, "big") + len(blobs).to_bytes(4, "big") + b"".join(entries))


def _header(size: int) -> bytes:
    """A blob's: its kind and the low bits of its size, then seven more bits in each byte."""
    encoded, size = [(3 << 4) | (size & 15)], size >> 4
    while size:
        encoded[-1] |= 0x80
        encoded.append(size & 0x7F)
        size >>= 7
    return bytes(encoded)


def test_a_pack_is_measured_before_it_is_opened() -> None:
    check_pack(pack_of(b"small", b"x" * 1_000), limit_bytes=1_005)
    with pytest.raises(PackTooLarge):
        check_pack(pack_of(b"small", b"x" * 1_001), limit_bytes=1_005)
    with pytest.raises(PackTooLarge):
        check_pack(pack_of(b"\0" * 20_000_000), limit_bytes=1_000_000)


def test_a_pack_that_lies_is_refused() -> None:
    header = b"PACK" + (2).to_bytes(4, "big") + (1).to_bytes(4, "big")
    small_blob = bytes([(3 << 4) | 5])
    for lie, words in (
        (header + small_blob + zlib.compress(b"x" * 100_000), "larger than it says"),
        (header + small_blob + b"not compressed", "damaged"),
        (header + small_blob + zlib.compress(b"hello")[:-3], "too early"),
        (header, "too early"),
        (b"no pack at all", "not a Git pack"),
    ):
        with pytest.raises(NotAPack, match=words):
            check_pack(io.BytesIO(lie), limit_bytes=1_000_000)


def test_a_delta_counts_as_what_it_makes() -> None:
    """Four bytes that copy the same thing over and over."""
    head = bytes([0x05]) + bytes([0x80, 0x80, 0x80, 0x80, 0x10])  # from 5 bytes to 4 GiB
    entry = bytes([(7 << 4) | len(head)]) + b"\0" * 20 + zlib.compress(head)
    pack = b"PACK" + (2).to_bytes(4, "big") + (1).to_bytes(4, "big") + entry
    with pytest.raises(PackTooLarge):
        check_pack(io.BytesIO(pack), limit_bytes=1_000_000)


def test_a_repository_that_is_too_large_is_refused(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit({"main.tf": "# " + "x" * 50_000})
    source = GitSource(repository.url, "main")
    monkeypatch.setattr(git, "MAX_OBJECT_BYTES", 10_000)
    with pytest.raises(BadInput, match="larger than"):
        read_files(source, commit)
    monkeypatch.setattr(git, "MAX_OBJECT_BYTES", 1_000_000)
    monkeypatch.setattr(git, "MAX_TOTAL_BYTES", 10_000)
    with pytest.raises(BadInput, match="Choose a deeper path"):
        read_files(source, commit)
