"""What a document's configuration declares, kept by the digest of its source."""

import hashlib
from functools import lru_cache
from typing import Any

from specs.configuration import Configuration
from specs.document import read_source
from specs.models import ReadConfiguration
from specs.snapshot import canonical

#: Counted up when the reader learns to read more: what was kept before is then read anew.
READER = 2


def declared_by(document: dict[str, Any]) -> Configuration:
    """Read the source once and keep what it declares: a Git host that is away stops nothing later."""
    digest = _digest(document)
    try:
        return _kept(digest)
    except ReadConfiguration.DoesNotExist:
        configuration = read_source(document)
        ReadConfiguration.objects.get_or_create(
            digest=digest, defaults={"variables": configuration.as_json()}
        )
        return configuration


@lru_cache(maxsize=256)
def _kept(digest: str) -> Configuration:
    return Configuration.from_json(ReadConfiguration.objects.get(pk=digest).variables)


def _digest(document: dict[str, Any]) -> str:
    read = {"reader": READER, "source": document["source"], "files": document["files"]}
    return hashlib.sha256(canonical(read)).hexdigest()
