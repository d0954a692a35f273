"""State backends: the generated override file, reading the state, and the holder of a lock.

The file replaces any backend that the configuration names. It stays on disk and is copied into plan files, so
it holds no secret: credentials of a backend are passed in the environment.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Mapping
from typing import Any

import httpx

from runner.clouds.registry import CLOUDS
from runner.outcome import StepFailed
from runner.protocol import Claim
from runner.terraform.relay import CUT_OFF, DIRECT

#: Terraform's name of each backend that a snapshot may choose.
KINDS = {"console": "http", "pg": "pg", **{kind: kind for cloud in CLOUDS.values() for kind in cloud.probes}}

#: The summary of Terraform's error when somebody else holds the lock.
LOCKED = "Error acquiring the state lock"
_ASK_SECONDS = 5.0


def backend_type(claim: Claim) -> str | None:
    """Return the backend that Terraform must use; None when the job has no state."""
    backend = claim.snapshot.get("backend") or {"kind": "console"}
    kind = str(backend.get("kind"))
    if kind == "console":
        return KINDS[kind] if claim.state else None
    if kind not in KINDS:
        raise StepFailed(
            "backend_unknown",
            f"This runner does not know the state backend {kind!r}. Update the runner, or choose another.",
            fatal=True,
        )
    return KINDS[kind]


def backend_file(claim: Claim) -> str | None:
    """Return the text of the override file."""
    type = backend_type(claim)
    if type is None:
        return None
    settings: dict[str, Any] = (claim.snapshot.get("backend") or {}).get("settings") or {}
    return json.dumps({"terraform": {"backend": {type: settings}}})


def console_state(environ: Mapping[str, str]) -> bytes | None:
    """Read the state from the console, empty when there is none; None when another way is needed.

    `terraform state pull` returns the same, and takes as long as half a plan.
    """
    if "TF_HTTP_ADDRESS" not in environ:
        return None
    login = f"{environ['TF_HTTP_USERNAME']}:{environ['TF_HTTP_PASSWORD']}"
    headers = {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}
    request = urllib.request.Request(environ["TF_HTTP_ADDRESS"], headers=headers)  # noqa: S310 - the relay
    try:
        with DIRECT.open(request, timeout=_ASK_SECONDS) as answer:
            body: bytes = answer.read()
            return body
    except CUT_OFF:
        return None


def lock_holder(environ: Mapping[str, str]) -> str:
    """Name the holder of the lock on the console's state; empty when that cannot be found out."""
    if "TF_HTTP_LOCK_ADDRESS" not in environ:
        return ""
    login = (environ["TF_HTTP_USERNAME"], environ["TF_HTTP_PASSWORD"])
    try:
        answer = httpx.get(environ["TF_HTTP_LOCK_ADDRESS"], auth=login, timeout=_ASK_SECONDS, trust_env=False)
        lock = answer.json() if answer.status_code == httpx.codes.OK else {}
    except (httpx.HTTPError, ValueError):
        return ""
    name = str(lock.get("Info") or lock.get("Who") or "")
    return f"{name} since {lock['Created']}" if name and lock.get("Created") else name
