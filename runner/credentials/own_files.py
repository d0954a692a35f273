"""What is secret in the credential files of the runner's machine: a job that prints one shows nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

#: Names of the variables that lead to such a file, and whether all of it is secret.
_FILES = {
    "AWS_SHARED_CREDENTIALS_FILE": False,
    "AWS_CONFIG_FILE": False,
    "AWS_WEB_IDENTITY_TOKEN_FILE": True,
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": True,
    "GOOGLE_APPLICATION_CREDENTIALS": False,
    "GOOGLE_CREDENTIALS": False,
    "AZURE_FEDERATED_TOKEN_FILE": True,
    "ARM_OIDC_TOKEN_FILE_PATH": True,
}
_SECRET_FIELDS = ("private_key", "client_secret", "refresh_token")
_SECRET_LINE = re.compile(r"^\s*aws_(?:secret_access_key|session_token)\s*=\s*(\S+)", re.MULTILINE)
#: Larger than any of them: a name may lead to anything.
_MAX_BYTES = 256 * 1024


def secrets_in_files(environ: Mapping[str, str]) -> Iterator[str]:
    for name, is_all_secret in _FILES.items():
        text = _text_of(environ[name]) if environ.get(name) else ""
        if is_all_secret:
            yield text.strip()
        else:
            yield from _secrets_in(text)


def _text_of(said: str) -> str:
    """What the file has; GOOGLE_CREDENTIALS may be the text itself."""
    if said.lstrip().startswith("{"):
        return said
    try:
        with Path(said).open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _secrets_in(text: str) -> Iterator[str]:
    yield from _SECRET_LINE.findall(text)
    try:
        document = json.loads(text)
    except ValueError:
        return
    if isinstance(document, dict):
        yield from (str(document[name]) for name in _SECRET_FIELDS if document.get(name))
