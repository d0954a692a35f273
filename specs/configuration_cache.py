"""The declared variables of each source, stored by the digest of the source."""

import hashlib
from functools import lru_cache
from typing import Any

from specs.configuration import Configuration
from specs.document import read_source
from specs.models import ReadConfiguration
from specs.snapshot import canonical

#: Increase this when the parser reads more than before, so that stored results are read anew.
READER = 2


def load_configuration(document: dict[str, Any]) -> Configuration:
    """Return what the document's source declares. Reads it once, so that a Git outage later stops nothing."""
    digest = _digest(document)
    try:
        return _find_stored(digest)
    except ReadConfiguration.DoesNotExist:
        configuration = read_source(document)
        ReadConfiguration.objects.get_or_create(
            digest=digest, defaults={"variables": configuration.as_json()}
        )
        return configuration


@lru_cache(maxsize=256)
def _find_stored(digest: str) -> Configuration:
    return Configuration.from_json(ReadConfiguration.objects.get(pk=digest).variables)


def _digest(document: dict[str, Any]) -> str:
    identifying_parts = {"reader": READER, "source": document["source"], "files": document["files"]}
    return hashlib.sha256(canonical(identifying_parts)).hexdigest()
