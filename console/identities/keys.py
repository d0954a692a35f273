"""The issuer's signing keys: published before use and kept after it, so that verifiers know every key.

    next ─(published for long enough)► current ─(its successor signs)► retired ─(its tokens expired)► gone

Every change happens under one advisory lock: two consoles that start together make one first key.
"""

from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import DurationField, Value
from django.db.models.functions import Now
from joserfc.jwk import RSAKey

from console.identities.models import KeyStatus, SigningKey
from console.vault import seal, unseal

#: RS256 is what every cloud takes. 2048 bits: keys live for a quarter, tokens for a quarter of an hour.
KEY_BITS = 2_048
#: A key signs for this long before its successor is published.
ROTATE_AFTER = timedelta(days=90)
#: Entra keeps a published set for up to a day; twice that is safe.
PUBLISHED_BEFORE_USE = timedelta(days=2)
#: Tokens live for 15 minutes; an hour is more than any clock is wrong.
KEPT_AFTER_USE = timedelta(hours=1)

LOCK_KEY = 7_115_477_922  # beside the janitor's


def published_keys() -> list[dict[str, Any]]:
    """Return the public keys that verifiers may need now or soon, the signing one first."""
    current_key()
    order = {KeyStatus.CURRENT: 0, KeyStatus.NEXT: 1, KeyStatus.RETIRED: 2}
    keys = sorted(SigningKey.objects.all(), key=lambda key: (order[KeyStatus(key.status)], key.created_at))
    return [key.public_jwk for key in keys]


def current_key() -> SigningKey:
    """Return the key that signs; create the first one."""
    key = SigningKey.objects.filter(status=KeyStatus.CURRENT).first()
    if key is not None:
        return key
    with transaction.atomic():
        _lock()
        return SigningKey.objects.filter(status=KeyStatus.CURRENT).first() or _make(KeyStatus.CURRENT)


def private_key(key: SigningKey) -> RSAKey:
    pem = unseal(key.sealed_private_key, context=key_context(key.kid))
    return RSAKey.import_key(pem, {"kid": key.kid, "use": "sig", "alg": "RS256"})


@transaction.atomic
def begin_rotation() -> SigningKey:
    """Publish the key that will sign next; the one that is published already stays."""
    _lock()
    return SigningKey.objects.filter(status=KeyStatus.NEXT).first() or _make(KeyStatus.NEXT)


@transaction.atomic
def finish_rotation() -> SigningKey:
    """Sign with the next key from now on. Tokens of the one before stay good."""
    _lock()
    following = SigningKey.objects.filter(status=KeyStatus.NEXT).first() or _make(KeyStatus.NEXT)
    SigningKey.objects.filter(status=KeyStatus.CURRENT).update(status=KeyStatus.RETIRED, retired_at=Now())
    SigningKey.objects.filter(pk=following.pk).update(status=KeyStatus.CURRENT, current_since=Now())
    following.refresh_from_db()
    return following


@transaction.atomic
def drop_retired(*, at_once: bool = False) -> int:
    """Delete keys whose tokens have all expired; all retired keys at once, when one was stolen."""
    _lock()
    retired = SigningKey.objects.filter(status=KeyStatus.RETIRED)
    if not at_once:
        retired = retired.filter(retired_at__lt=Now() - _interval(KEPT_AFTER_USE))
    return retired.delete()[0]


def rotate_when_due() -> None:
    """Take the next step of the rotation when it is due. The janitor calls it."""
    keys = SigningKey.objects.all()
    ready = keys.filter(status=KeyStatus.NEXT, created_at__lt=Now() - _interval(PUBLISHED_BEFORE_USE))
    old = keys.filter(status=KeyStatus.CURRENT, current_since__lt=Now() - _interval(ROTATE_AFTER))
    expired = keys.filter(status=KeyStatus.RETIRED, retired_at__lt=Now() - _interval(KEPT_AFTER_USE))
    if ready.exists():
        finish_rotation()
    elif old.exists() and not keys.filter(status=KeyStatus.NEXT).exists():
        begin_rotation()
    if expired.exists():
        drop_retired()


def _make(status: KeyStatus) -> SigningKey:
    private_key = RSAKey.generate_key(KEY_BITS, private=True)
    kid = private_key.thumbprint()
    public = {**private_key.as_dict(private=False), "kid": kid, "use": "sig", "alg": "RS256"}
    key = SigningKey(
        kid=kid,
        public_jwk=public,
        sealed_private_key=seal(private_key.as_pem(private=True), context=key_context(kid)),
        status=status,
        current_since=Now() if status == KeyStatus.CURRENT else None,
    )
    key.save(force_insert=True)
    return SigningKey.objects.get(pk=kid)


def _lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])


def _interval(length: timedelta) -> Value:
    return Value(length, output_field=DurationField())


def key_context(kid: str) -> str:
    return f"signing-key:{kid}"
