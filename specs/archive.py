"""Read uploaded archives into memory within bounds, and refuse hostile ones."""

import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator

from console.errors import BadInput
from specs.configuration import MAX_FILES, MAX_TOTAL_BYTES, check_paths

#: Files that tools leave behind and that do not belong in an upload.
IGNORED = ("__MACOSX/", ".git/", ".terraform/", ".DS_Store")
GZIP = b"\x1f\x8b"
#: A tar is larger than its files: each takes a header and whole blocks of 512 bytes.
MAX_TAR_BYTES = 2 * MAX_TOTAL_BYTES
#: The exceptions of reading a damaged or unusual zip; entries may also use bzip2 and LZMA.
DAMAGED = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, NotImplementedError, EOFError, OSError,
    ValueError,
)  # fmt: skip


def read_archive(content: bytes) -> dict[str, str]:
    """Return the text files of a zip or tar archive by path. A single top-level folder is stripped."""
    entries = _zip_entries(content) if zipfile.is_zipfile(io.BytesIO(content)) else _tar_entries(content)
    files: dict[str, str] = {}
    size = 0
    for path, data in entries:
        size += len(data)
        if size > MAX_TOTAL_BYTES or len(files) >= MAX_FILES:
            raise _too_large()
        files[path] = _text(path, data)
    if not files:
        raise BadInput("The archive has no files. Pack the folder that has the .tf files.", field="archive")
    check_paths(files)
    return _without_top_folder(files)


def _zip_entries(content: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for entry in archive.infolist():
                if entry.is_dir() or _is_ignored(entry.filename):
                    continue
                if (entry.external_attr >> 16) & 0o170000 == 0o120000:
                    raise _not_a_file(entry.filename)
                with archive.open(entry) as member:
                    # Never trusts the size in the archive's own table: a bomb lies there.
                    yield entry.filename, member.read(MAX_TOTAL_BYTES + 1)
    except DAMAGED as error:
        raise BadInput(f"The zip archive cannot be read: {error}. Pack it again.", field="archive") from error


def _tar_entries(content: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(_inflate(content)), mode="r:") as archive:
            for entry in archive:
                if entry.isdir() or _is_ignored(entry.name):
                    continue
                member = archive.extractfile(entry) if entry.isfile() else None
                if member is None:
                    raise _not_a_file(entry.name)
                yield entry.name.removeprefix("./"), member.read(MAX_TOTAL_BYTES + 1)
    except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError) as error:
        raise BadInput(
            "The archive cannot be read: it is neither zip, tar nor tar.gz. Pack it again as one of them.",
            field="archive",
        ) from error


def _inflate(content: bytes) -> bytes:
    """Return the tar inside a tar.gz. Skipping an entry also inflates it, so the whole is bounded first."""
    if not content.startswith(GZIP):
        return content
    stream = zlib.decompressobj(wbits=31)
    inflated = stream.decompress(content, MAX_TAR_BYTES)
    if not stream.eof:
        raise _too_large() if stream.unconsumed_tail else EOFError("cut off")
    return inflated


def _too_large() -> BadInput:
    return BadInput(
        f"The archive unpacks to more than {MAX_TOTAL_BYTES // 1024 // 1024} MiB or {MAX_FILES} files. "
        "Leave out what Terraform does not need.",
        field="archive",
    )


def _not_a_file(path: str) -> BadInput:
    return BadInput(f"{path!r} is a link or a special file. Only regular files are allowed.", field="archive")


def _is_ignored(path: str) -> bool:
    return any(part in f"/{path}" for part in (f"/{name}" for name in IGNORED))


def _text(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{path!r} is not UTF-8 text. Leave it out.", field="archive") from error


def _without_top_folder(files: dict[str, str]) -> dict[str, str]:
    tops = {path.split("/", 1)[0] for path in files}
    if len(tops) != 1 or any("/" not in path for path in files):
        return files
    return {path.split("/", 1)[1]: text for path, text in files.items()}
