"""The http backend's verbs by hand, for what real Terraform never does."""

from __future__ import annotations

import base64
import hashlib
import json
from concurrent.futures import Future
from typing import Any
from uuid import uuid4

import httpx

from runner.protocol import Claim
from specs.models import Spec
from tests.console_app import Background, Http
from tests.people import Tenant

LINEAGE = "6f1c2a52-0f5e-4a39-9d0c-2f1f1c6d8f11"


def state(serial: int = 1, *, lineage: str = LINEAGE, **changes: Any) -> bytes:
    content = {
        "version": 4,
        "terraform_version": "1.11.4",
        "serial": serial,
        "lineage": lineage,
        "outputs": {},
        "resources": [],
        **changes,
    }
    return json.dumps(content, indent=2).encode()


class StateClient:
    """Speaks to one spec's state with one credential."""

    def __init__(self, background: Background, spec: Spec, password: str, *, user: str = "attempt") -> None:
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._http = Http(background, f"Basic {login}")
        self.path = f"/api/state/{spec.pk}"

    @classmethod
    def of_attempt(cls, background: Background, spec: Spec, claim: Claim) -> StateClient:
        assert claim.state is not None
        return cls(background, spec, claim.state.password, user=claim.state.username)

    @classmethod
    def of_person(cls, background: Background, spec: Spec, tenant: Tenant, role: str) -> StateClient:
        return cls(background, spec, tenant.token_of(getattr(tenant, role)), user="whoever")

    def read(self, **headers: str) -> httpx.Response:
        return self._http.get(self.path, headers=headers)

    def write(self, body: bytes, lock_id: str, **headers: str) -> httpx.Response:
        return self._http.post(f"{self.path}?ID={lock_id}", content=body, headers=headers)

    def begin_write(self, body: bytes, lock_id: str) -> Future[httpx.Response]:
        """Send a write and do not wait for its answer."""
        return self._http.begin("POST", f"{self.path}?ID={lock_id}", content=body)

    def begin_lock(self, lock_id: str) -> Future[httpx.Response]:
        return self._http.begin("LOCK", self.path, json=lock_info(lock_id))

    def delete(self, lock_id: str) -> httpx.Response:
        return self._http.delete(f"{self.path}?ID={lock_id}")

    def lock(self, lock_id: str, **info: str) -> httpx.Response:
        return self._http.request("LOCK", self.path, json=lock_info(lock_id, **info))

    def unlock(self, lock_id: str) -> httpx.Response:
        return self._http.request("UNLOCK", self.path, json=lock_info(lock_id))

    def force_unlock(self) -> httpx.Response:
        return self._http.request("UNLOCK", self.path)

    def holder(self) -> httpx.Response:
        return self._http.get(f"{self.path}/lock")

    def locked(self, **info: str) -> str:
        """Take the lock; its id."""
        lock_id = str(uuid4())
        answer = self.lock(lock_id, **info)
        assert answer.status_code == 200, answer.text
        return lock_id

    def store(self, body: bytes) -> None:
        """Lock, write, unlock."""
        lock_id = self.locked()
        answer = self.write(body, lock_id)
        assert answer.status_code == 200, answer.text
        assert self.unlock(lock_id).status_code == 200


def lock_info(lock_id: str, **info: str) -> dict[str, str]:
    own = {"Operation": "OperationTypeApply", "Info": "", "Who": "root@host", "Version": "1.11.4", "Path": ""}
    return {"ID": lock_id, **own, **info}


def md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
