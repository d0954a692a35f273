"""Uploaded archives: what is taken from them, and what is refused before it does harm."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest

from console.errors import BadInput
from specs.archive import read_archive

MAIN = "locals {}\n"


def zip_of(files: dict[str, bytes | str], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tar_of(files: dict[str, bytes | str | tarfile.TarInfo], mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            data = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


@pytest.mark.parametrize("pack", [zip_of, tar_of, lambda files: tar_of(files, "w")])
def test_a_folder_is_read_without_its_top_and_without_what_tools_leave(pack: object) -> None:
    files = {
        "project/main.tf": MAIN,
        "project/modules/net/main.tf": "# net\n",
        "project/.terraform/modules.json": "{}",
        "__MACOSX/project/main.tf": "junk",
        "project/.git/config": "junk",
    }
    assert read_archive(pack(files)) == {"main.tf": MAIN, "modules/net/main.tf": "# net\n"}  # type: ignore[operator]


def test_without_a_top_folder_paths_stay_as_they_are() -> None:
    assert read_archive(tar_of({"./main.tf": MAIN, "./a/b.tf": ""})) == {"main.tf": MAIN, "a/b.tf": ""}


def lying_zip() -> bytes:
    """A bomb whose own table says that it is small."""
    buffer = bytearray(zip_of({"main.tf": b"\0" * 16_000_000}))
    sizes = (16_000_000).to_bytes(4, "little")
    while (at := buffer.find(sizes)) >= 0:
        buffer[at : at + 4] = (10).to_bytes(4, "little")
    return bytes(buffer)


def damaged_zip(compression: int) -> bytes:
    buffer = bytearray(zip_of({"main.tf": MAIN * 200}, compression))
    buffer[60:90] = bytes(30)
    return bytes(buffer)


HOSTILE = {
    "a zip bomb": (zip_of({"main.tf": b" " * 16_000_000}), "unpacks to more than 5 MiB"),
    "a zip bomb that lies": (lying_zip(), "unpacks to more than|cannot be read"),
    "a tar bomb": (tar_of({"main.tf": b" " * 16_000_000}), "unpacks to more than 5 MiB"),
    "a bomb in what is left out": (tar_of({".git/x": b" " * 16_000_000, "main.tf": MAIN}), "unpacks to more"),
    "a bomb in a bomb": (gzip.compress(gzip.compress(b"\0" * 16_000_000)), "cannot be read"),
    "too many files": (zip_of({f"{n}.tf": "" for n in range(501)}), "501|500 files"),
    "a way out of a zip": (zip_of({"../../etc/cron.d/x": "", "main.tf": MAIN}), "Rename it"),
    "a way out of a tar": (tar_of({"a/../../x.tf": "", "main.tf": MAIN}), "Rename it"),
    "an absolute path": (tar_of({"/etc/x.tf": "", "main.tf": MAIN}), "Rename it"),
    "a link": (tar_of({"main.tf": link("main.tf", "/etc/passwd")}), "is a link or a special file"),
    "a hard link": (tar_of({"b.tf": link("b.tf", "a.tf", tarfile.LNKTYPE)}), "is a link or a special file"),
    "a device": (tar_of({"x.tf": link("x.tf", "", tarfile.CHRTYPE)}), "is a link or a special file"),
    "no text": (zip_of({"main.tf": b"\xff\xfe\x00"}), "is not UTF-8 text"),
    "nothing": (zip_of({}), "has no files"),
    "no archive": (b"hello", "neither zip, tar nor tar.gz"),
    "half of a tar.gz": (tar_of({"main.tf": MAIN * 100})[:-20], "cannot be read"),
    "half of a zip": (zip_of({"main.tf": "x" * 1_000}, zipfile.ZIP_STORED)[:-30], "cannot be read"),
    "a damaged LZMA": (damaged_zip(zipfile.ZIP_LZMA), "cannot be read"),
    "a damaged bzip2": (damaged_zip(zipfile.ZIP_BZIP2), "cannot be read"),
    "an empty body": (b"", "cannot be read"),
}


@pytest.mark.parametrize(("content", "why"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_archive_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(BadInput, match=why) as refused:
        read_archive(content)
    assert refused.value.extra["field"] in ("archive", "source.files")


def test_a_link_in_a_zip_is_refused() -> None:
    entry = zipfile.ZipInfo("main.tf")
    entry.external_attr = 0o120777 << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(BadInput, match="is a link"):
        read_archive(buffer.getvalue())
