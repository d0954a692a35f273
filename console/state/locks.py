"""The lock on one spec's state: taken, given back, taken away, and what is known of whoever holds it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from django.db import IntegrityError, transaction
from django.utils import timezone

from console.accounts.models import User
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import InvalidMessage, StateLocked
from console.jobs.models import Attempt
from console.live import topics
from console.live.publish import publish_on_commit
from console.state.models import StateLock
from console.state.writers import Writer
from specs.models import Spec


def lock_state(*, spec: Spec, info: dict[str, Any], writer: Writer) -> None:
    """Take the lock, or refuse with the document of whoever holds it. Taking it twice is the same lock."""
    lock_id = str(info.get("ID", ""))
    if not 0 < len(lock_id) <= 100:
        raise InvalidMessage("ID: the lock document has none, or one of more than 100 characters")
    try:
        with transaction.atomic():
            writer.require_claim()
            _create(spec, lock_id, info, writer)
    except IntegrityError as error:
        lock = held_lock(spec)
        if lock is None or lock.lock_id != lock_id or not writer.holds(lock):
            raise lock_refusal(lock) from error


def unlock_state(*, spec: Spec, lock_id: str, writer: Writer) -> None:
    """Release one's own lock. Without a lock this does nothing; another's lock is refused."""
    lock = held_lock(spec)
    if lock is None:
        return
    if lock.lock_id != lock_id or not writer.holds(lock):
        raise lock_refusal(lock)
    if StateLock.objects.filter(spec=spec, lock_id=lock_id).delete()[0]:
        _announce(spec)


def force_unlock(*, spec: Spec, unlocked_by: User, lock_id: str | None = None) -> None:
    """Release the lock, whoever holds it. With an id, only if it is still that lock."""
    with transaction.atomic():
        lock = StateLock.objects.select_for_update(of=("self",)).filter(spec=spec).first()
        if lock is None:
            return
        if lock_id is not None and lock.lock_id != lock_id:
            raise lock_refusal(lock)
        record(
            organization=spec.organization,
            actor=unlocked_by,
            action=AuditAction.STATE_FORCE_UNLOCKED,
            target=spec,
            lock_id=lock.lock_id,
            holder=holder_name(lock),
            held_seconds=round((timezone.now() - lock.locked_at).total_seconds()),
        )
        lock.delete()
        _announce(spec)


def release_abandoned(*, lock: StateLock, because: str) -> bool:
    """Release a lock whose attempt is over and has changed nothing; False when somebody was quicker."""
    with transaction.atomic():
        released = StateLock.objects.filter(
            spec=lock.spec_id, lock_id=lock.lock_id, claim_id=lock.claim_id
        ).delete()[0]
        if released:
            record(
                organization=lock.spec.organization,
                actor=None,
                action=AuditAction.STATE_LOCK_RELEASED,
                target=lock.spec,
                lock_id=lock.lock_id,
                because=because,
            )
            _announce(lock.spec)
    return bool(released)


@contextmanager
def hold_lock(*, spec: Spec, user: User, operation: str) -> Iterator[None]:
    """Hold the lock within the open transaction: whoever wants it meanwhile waits for the commit."""
    lock_id = str(uuid4())
    writer = Writer(user=user)
    lock_state(spec=spec, info={"ID": lock_id, "Operation": operation, "Who": str(user)}, writer=writer)
    yield
    StateLock.objects.filter(spec=spec, lock_id=lock_id).delete()


def held_lock(spec: Spec) -> StateLock | None:
    return StateLock.objects.select_related("spec__organization", "job", "user").filter(spec=spec).first()


def lock_refusal(lock: StateLock | None) -> StateLocked:
    if lock is None:
        return StateLocked("The state was locked a moment ago. Try again.", holder={})
    return StateLocked(
        f"The state of {lock.spec.name} is locked by {holder_name(lock)} since "
        f"{lock.locked_at:%Y-%m-%d %H:%M:%S} UTC, for {operation_of(lock)}.",
        holder=lock_document(lock),
    )


def lock_document(lock: StateLock) -> dict[str, Any]:
    """Terraform's own document; where its `Info` is empty, it says who holds the lock here."""
    document: dict[str, Any] = lock.info
    return document | {"Info": document.get("Info") or holder_name(lock)}


def holder_name(lock: StateLock) -> str:
    """«DEPLOY #12 on runner eu-1», or a person's name and machine."""
    if lock.job is not None:
        runner = runner_of(lock)
        return f"{lock.job} on runner {runner}" if runner else str(lock.job)
    name = lock.user.get_username() if lock.user else "somebody"
    where = str(lock.info.get("Who", ""))
    return f"{name} ({where})" if where and where != name else name


def runner_of(lock: StateLock) -> str:
    attempt = attempt_of(lock)
    return attempt.runner.name if attempt else ""


def attempt_of(lock: StateLock) -> Attempt | None:
    if lock.claim_id is None:
        return None
    return Attempt.objects.select_related("job", "runner").filter(claim_id=lock.claim_id).first()


def operation_of(lock: StateLock) -> str:
    """`OperationTypeApply` is Terraform's word for it."""
    return str(lock.info.get("Operation", "")).removeprefix("OperationType").lower() or "something"


def _create(spec: Spec, lock_id: str, info: dict[str, Any], writer: Writer) -> None:
    StateLock.objects.create(
        spec=spec,
        lock_id=lock_id,
        info=info,
        claim_id=writer.claim_id,
        job_id=writer.job_id,
        user=writer.user,
    )
    _announce(spec)


def _announce(spec: Spec) -> None:
    publish_on_commit(topics.organization(spec.organization_id, "specs"))
