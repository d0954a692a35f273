"""A state document as Terraform writes it: what it says of itself, and how it travels. No database."""

import gzip
import hashlib
import re
import zlib
from dataclasses import dataclass
from typing import Any

import orjson

from console.errors import NotState

#: Terraform's state format since 0.12.
FORMAT = 4
#: The fastest level: state is repetitive, and a slower one gains little of what this one leaves.
COMPRESSION_LEVEL = 1
#: Both gzip and zlib are recognized by their first bytes.
ANY_HEADER = 47
MAX_SERIAL = 2**63 - 1


@dataclass(frozen=True, slots=True)
class StateDocument:
    """A document that was checked, in the bytes it came in."""

    body: bytes
    serial: int
    lineage: str
    terraform_version: str
    resource_count: int
    sha256: str

    @classmethod
    def read(cls, body: bytes) -> "StateDocument":
        """Refuses whatever is not state."""
        content = decoded(body)
        return cls(
            body=body,
            serial=content["serial"],
            lineage=content["lineage"],
            terraform_version=content.get("terraform_version", "").replace("\0", "")[:40],
            resource_count=_count(content),
            sha256=hashlib.sha256(body).hexdigest(),
        )

    def with_serial(self, serial: int) -> "StateDocument":
        """Return the document under another serial, otherwise byte for byte the same."""
        content = decoded(self.body) | {"serial": serial}
        for match in re.finditer(rb'"serial"\s*:\s*(%d)\b' % self.serial, self.body):
            body = self.body[: match.start(1)] + str(serial).encode() + self.body[match.end(1) :]
            # An attribute may be called serial, too: only one of the places is the document's own.
            if decoded(body) == content:
                return StateDocument.read(body)
        raise NotState("The state's own serial cannot be found in it.")


def decoded(body: bytes) -> dict[str, Any]:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise NotState(
            f"The body is not Terraform state: it is not JSON ({error}). Nothing was written."
        ) from error
    if problem := _problem(content):
        raise NotState(f"The body is not Terraform state: {problem}. Nothing was written.")
    checked: dict[str, Any] = content
    return checked


def empty(*, serial: int, lineage: str) -> bytes:
    return orjson.dumps(
        {"version": FORMAT, "serial": serial, "lineage": lineage, "outputs": {}, "resources": []}
    )


def compressed(body: bytes) -> bytes:
    # Without a time in its header the same state is the same bytes.
    return gzip.compress(body, COMPRESSION_LEVEL, mtime=0)


def decompressed(stored: bytes) -> bytes:
    return zlib.decompress(stored, wbits=ANY_HEADER)


def _problem(content: Any) -> str:
    """Explain why this is not state; empty when it is."""
    if not isinstance(content, dict):
        return "it is not an object"
    serial, lineage = content.get("serial"), content.get("lineage")
    if not isinstance(serial, int) or isinstance(serial, bool) or not 0 <= serial <= MAX_SERIAL:
        return "it has no serial"
    if not isinstance(lineage, str) or not 0 < len(lineage) <= 100 or "\0" in lineage:
        return "it has no lineage"
    if not isinstance(content.get("terraform_version", ""), str):
        return "its Terraform version is not text"
    if "encrypted_data" in content:
        return ""  # OpenTofu can encrypt state before it leaves the machine
    if content.get("version") != FORMAT:
        return f"it has the format {content.get('version')!r}, and only {FORMAT} is read here"
    return _problem_inside(content)


def _problem_inside(content: dict[str, Any]) -> str:
    """Pages read what is in here, so its shape is that of Terraform's states all the way down."""
    resources, outputs = content.get("resources"), content.get("outputs")
    if not _is_list_of_objects(resources):
        return "its resources are not a list of objects"
    if outputs is not None and not (
        isinstance(outputs, dict) and all(isinstance(part, dict) for part in outputs.values())
    ):
        return "its outputs are not objects by name"
    for resource in resources or []:
        address = f"{resource.get('type')}.{resource.get('name')}"
        if not all(isinstance(resource.get(key), str) for key in ("mode", "type", "name")):
            return f"the resource {address[:200]!r} has no mode, type or name"
        if not _is_list_of_objects(resource.get("instances")):
            return f"the instances of {address[:200]!r} are not a list of objects"
        for instance in resource.get("instances") or []:
            parts = (instance.get(key) for key in ("attributes", "attributes_flat"))
            if not all(isinstance(part or {}, dict) for part in parts):
                return f"the attributes of {address[:200]!r} are not an object"
    return ""


def _is_list_of_objects(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(item, dict) for item in value))


def _count(content: dict[str, Any]) -> int:
    """Count the instances of managed resources, which a destroy would destroy."""
    return sum(
        len(resource.get("instances") or [])
        for resource in content.get("resources") or []
        if resource["mode"] == "managed"
    )
