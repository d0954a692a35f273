"""Secrets at rest: AES-256-GCM with named keys, the first of which seals; older ones still open.

A sealed value is `version(1) key-id(8) nonce(12) ciphertext+tag`. The context (which table, which
row) is authenticated with it, so that a sealed value moved to another row does not open.
"""

import base64
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

VERSION = b"\x01"
KEY_ID_BYTES = 8
NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class SealedField:
    """A field with sealed values, and the context that each row's value is bound to."""

    model: type[Any]
    field: str
    context: Callable[[Any], str]


#: Every field with sealed values, for key rotation. Packages add theirs in AppConfig.ready().
SEALED_FIELDS: list[SealedField] = []


class CannotOpen(Exception):
    """A value was sealed with a key that is not configured, or it was changed."""


def new_key() -> str:
    """A fresh key in the form of the SLIPWAY_ENCRYPTION_KEYS setting."""
    return f"{os.urandom(KEY_ID_BYTES // 2).hex()}:{base64.b64encode(os.urandom(32)).decode()}"


def seal(value: bytes, *, context: str) -> bytes:
    key_id, cipher = next(iter(_ciphers().items()))
    nonce = os.urandom(NONCE_BYTES)
    return VERSION + key_id + nonce + cipher.encrypt(nonce, value, context.encode())


def unseal(sealed: bytes | memoryview, *, context: str) -> bytes:
    sealed = bytes(sealed)
    body = len(VERSION) + KEY_ID_BYTES
    cipher = _ciphers().get(sealed[len(VERSION) : body])
    if sealed[: len(VERSION)] != VERSION or cipher is None:
        raise CannotOpen(f"{context}: sealed with a key that is not in SLIPWAY_ENCRYPTION_KEYS")
    nonce, secret = sealed[body : body + NONCE_BYTES], sealed[body + NONCE_BYTES :]
    try:
        return cipher.decrypt(nonce, secret, context.encode())
    except InvalidTag as error:
        raise CannotOpen(f"{context}: the sealed value was changed or moved") from error


def first_key_id() -> bytes:
    """The name of the key that seals, as sealed values carry it."""
    return next(iter(_ciphers()))


@cache
def _ciphers() -> dict[bytes, AESGCM]:
    return dict(_parse(entry) for entry in settings.SLIPWAY_ENCRYPTION_KEYS.split(","))


def _parse(entry: str) -> tuple[bytes, AESGCM]:
    key_id, separator, key = entry.strip().partition(":")
    try:
        name, secret = key_id.encode().ljust(KEY_ID_BYTES, b"\0"), base64.b64decode(key, validate=True)
        if separator and 0 < len(key_id) <= KEY_ID_BYTES and len(secret) == 32:
            return name, AESGCM(secret)
    except ValueError:
        pass
    raise ImproperlyConfigured(
        "SLIPWAY_ENCRYPTION_KEYS: each entry is `id:key`, the id up to 8 characters, "
        "the key 32 bytes in base64"
    )
