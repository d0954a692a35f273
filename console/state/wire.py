"""Terraform's http backend, verb by verb: GET, POST and DELETE the state, LOCK and UNLOCK it.

Attempts come with their own token, people with an API token. LOCK and UNLOCK are also taken as POST and
DELETE on `/lock`, for proxies that dislike unusual verbs.
"""

import asyncio
import base64
import binascii
import hashlib
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from console.errors import (
    Forbidden,
    InvalidMessage,
    NotFound,
    StateCutOff,
    StateLocked,
    StateTokenUnknown,
    StateTooLarge,
)
from console.inputs import whole_number
from console.live.threads import in_thread
from console.runners.requests import method
from console.state import access, locks, services
from console.state.document import decompressed
from console.state.tokens import PERSON_PREFIX, person_of, writer_of
from console.state.writers import Writer
from specs.models import Spec

#: The username that goes with an attempt's token. With a person's token any name will do.
ATTEMPT_USER = "attempt"

#: A lock document is a few hundred bytes.
MAX_LOCK_BYTES = 64 * 1024

#: A state of 50 MB takes about 300 MB while it is read and checked, so few of that size are taken at a time.
LARGE_BYTES = 4 * 1024 * 1024
LARGE_AT_ONCE = 2
_large = asyncio.Semaphore(LARGE_AT_ONCE)


@method("GET", "POST", "DELETE", "LOCK", "UNLOCK")
async def document(request: HttpRequest, spec_id: UUID) -> HttpResponse:
    if request.method == "POST" and _announced_bytes(request) > LARGE_BYTES:
        async with _large:
            return await in_thread(_document, request, spec_id)
    return await in_thread(_document, request, spec_id)


@method("GET", "POST", "DELETE", "LOCK", "UNLOCK")
async def lock(request: HttpRequest, spec_id: UUID) -> HttpResponse:
    return await in_thread(_lock, request, spec_id)


def _document(request: HttpRequest, spec_id: UUID) -> HttpResponse:
    writer, spec = _authorize(request, spec_id)
    match request.method:
        case "GET":
            return _newest(request, spec)
        case "POST":
            return _carry_out(_write, request, spec, writer)
        case "DELETE":
            return _carry_out(_delete, request, spec, writer)
        case "LOCK":
            return _carry_out(_take_lock, request, spec, writer)
    return _carry_out(_unlock, request, spec, writer)


def _lock(request: HttpRequest, spec_id: UUID) -> HttpResponse:
    writer, spec = _authorize(request, spec_id)
    match request.method:
        case "GET":
            lock = locks.held_lock(spec)
            return JsonResponse(locks.lock_document(lock)) if lock else HttpResponse(status=204)
        case "POST" | "LOCK":
            return _carry_out(_take_lock, request, spec, writer)
    return _carry_out(_unlock, request, spec, writer)


def _newest(request: HttpRequest, spec: Spec) -> HttpResponse:
    newest = spec.state_versions.order_by("-serial").first()
    if newest is None:
        return HttpResponse(status=204)
    body = services.stored_body(version=newest)
    # Terraform's client says that it takes gzip, which is what we keep: nothing to unpack here.
    takes_gzip = "gzip" in request.headers.get("Accept-Encoding", "")
    answer = HttpResponse(body if takes_gzip else decompressed(body), content_type="application/json")
    if takes_gzip:
        answer["Content-Encoding"] = "gzip"
    answer["Vary"] = "Accept-Encoding, Authorization"
    return answer


def _carry_out(operation: Any, request: HttpRequest, spec: Spec, writer: Writer) -> HttpResponse:
    try:
        operation(request, spec, writer)
    except StateLocked as error:
        # Terraform expects the holder's lock document as the body, and prints its id.
        return JsonResponse(error.extra.get("holder", {}), status=error.status)
    return HttpResponse(status=200)


def _write(request: HttpRequest, spec: Spec, writer: Writer) -> None:
    body = _whole_body(request)
    services.write_state(spec=spec, body=body, lock_id=request.GET.get("ID", ""), writer=writer)


def _delete(request: HttpRequest, spec: Spec, writer: Writer) -> None:
    services.delete_state(spec=spec, lock_id=request.GET.get("ID", ""), writer=writer)


def _take_lock(request: HttpRequest, spec: Spec, writer: Writer) -> None:
    locks.lock_state(spec=spec, info=_lock_document(request), writer=writer)


def _unlock(request: HttpRequest, spec: Spec, writer: Writer) -> None:
    """`terraform force-unlock` sends no document at all: it takes the lock away, whoever holds it."""
    info = _lock_document(request)
    lock_id = str(info.get("ID", "")) or None
    lock = locks.held_lock(spec)
    if lock_id is not None and (lock is None or writer.holds(lock)):
        locks.unlock_state(spec=spec, lock_id=lock_id, writer=writer)
        return
    if writer.user is None:
        raise Forbidden("An attempt gives its own lock back, and takes none away.")
    access.require_may_unlock(writer.user, spec)
    locks.force_unlock(spec=spec, unlocked_by=writer.user, lock_id=lock_id)


def _authorize(request: HttpRequest, spec_id: UUID) -> tuple[Writer, Spec]:
    user, password = _basic(request)
    if password.startswith(PERSON_PREFIX):
        person = person_of(password)
        return Writer(user=person), access.state_to_use_by_id(person, spec_id)
    if user != ATTEMPT_USER:
        raise StateTokenUnknown
    writer = writer_of(password, spec_id)
    spec = Spec.objects.select_related("organization").filter(pk=spec_id).first()
    if spec is None:
        raise NotFound
    return writer, spec


def _basic(request: HttpRequest) -> tuple[str, str]:
    scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise StateTokenUnknown from None
    if scheme.lower() != "basic" or not password:
        raise StateTokenUnknown
    return user, password


def _announced_bytes(request: HttpRequest) -> int:
    return whole_number(request.headers.get("Content-Length"), digits=18) or 0


def _whole_body(request: HttpRequest) -> bytes:
    """The body, if it arrived as it was sent: a write that was cut off leaves the old version."""
    limit = settings.SLIPWAY_MAX_STATE_BYTES
    announced = _announced_bytes(request)
    body = b"" if announced > limit else request.read(limit + 1)
    if max(announced, len(body)) > limit:
        raise StateTooLarge(
            f"State has at most {limit} bytes here, and this one has more. Nothing was written. "
            "Split the Spec, or raise SLIPWAY_MAX_STATE_BYTES."
        )
    if announced and len(body) != announced:
        raise StateCutOff(
            f"{announced} bytes were announced, {len(body)} came. Nothing was written; send it again."
        )
    expected = request.headers.get("Content-MD5")
    if expected and base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode() != expected:
        raise StateCutOff("The body does not match its Content-MD5. Nothing was written; send it again.")
    return body


def _lock_document(request: HttpRequest) -> dict[str, Any]:
    text = request.read(MAX_LOCK_BYTES + 1)
    if len(text) > MAX_LOCK_BYTES:
        raise InvalidMessage(f"The lock document has more than {MAX_LOCK_BYTES} bytes.")
    try:
        info = orjson.loads(text or b"{}")
    except orjson.JSONDecodeError as error:
        raise InvalidMessage(f"The lock document is not JSON: {error}") from error
    if not isinstance(info, dict):
        raise InvalidMessage("The lock document is not an object.")
    if b"\\u0000" in text:
        raise InvalidMessage("The lock document has NUL in it, which cannot be stored.")
    return info
