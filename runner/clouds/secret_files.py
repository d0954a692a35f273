"""Secrets in the credential files of the runner's machine, which are masked in the logs of jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

#: Finds the secrets in the text of a file.
FindSecrets = Callable[[str], Iterable[str]]

_SECRET_FIELDS = ("private_key", "client_secret", "refresh_token")
#: Larger than any of them: a name may lead to anything.
_MAX_BYTES = 256 * 1024


def secrets_in_files(environ: Mapping[str, str], files: Mapping[str, FindSecrets]) -> Iterator[str]:
    """Read the files that these variables name."""
    for name, find in files.items():
        if environ.get(name):
            yield from find(_read(environ[name]))


def whole_text(text: str) -> Iterable[str]:
    """Return all of it, as for a file that is a token."""
    return [text.strip()]


def json_fields(text: str) -> Iterator[str]:
    """Return the secret fields of a JSON document."""
    try:
        document = json.loads(text)
    except ValueError:
        return
    if isinstance(document, dict):
        yield from (str(document[name]) for name in _SECRET_FIELDS if document.get(name))


def _read(value: str) -> str:
    """Return the text of the file; some variables may hold the text itself."""
    if value.lstrip().startswith("{"):
        return value
    try:
        with Path(value).open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
