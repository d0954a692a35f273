"""Reading and writing one spec's state: every write is a new version, or nothing at all."""

from django.db import IntegrityError, transaction

from console.accounts.models import User
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import ConfirmationMismatch, Conflict, StateLineageDiffers, StateNotLocked, StateOlder
from console.live import topics
from console.live.publish import publish_on_commit
from console.state.document import StateDocument, compressed, decompressed, empty
from console.state.locks import hold_lock, lock_refusal
from console.state.models import Origin, StateLock, StateVersion
from console.state.retention import remove_old_versions
from console.state.selectors import newest_version, version_with_body
from console.state.writers import Writer
from console.vault import seal, unseal
from specs.models import Spec

__all__ = ["Writer", "delete_state", "import_state", "read_state", "read_version", "roll_back", "write_state"]


def read_state(*, spec: Spec) -> bytes | None:
    """The newest version's body; None when nothing was ever written."""
    newest = spec.state_versions.order_by("-serial").first()
    return read_version(version=newest) if newest else None


def read_version(*, version: StateVersion) -> bytes:
    return decompressed(stored_body(version=version))


def stored_body(*, version: StateVersion) -> bytes:
    """The body as it is kept: gzip."""
    return unseal(version.sealed_body, context=_context(version))


def write_state(*, spec: Spec, body: bytes, lock_id: str, writer: Writer) -> StateVersion:
    """Store a new version: under the lock, of the same lineage, with a higher serial. Or nothing at all."""
    document = StateDocument.read(body)
    # Compressed and sealed before anything is held: nobody waits for that.
    version = _seal_version(spec, document, writer)
    with transaction.atomic():
        writer.require_claim()
        _require_lock(spec, lock_id, writer)
        newest = newest_version(spec)
        if newest is not None and (newest.serial, newest.sha256) == (document.serial, document.sha256):
            return newest  # the answer to the first one was lost
        _keep(version, newest)
        if writer.user is not None:
            _audit(version, writer.user, AuditAction.STATE_WRITTEN)
    remove_old_versions(spec=spec)
    return version


def delete_state(*, spec: Spec, lock_id: str, writer: Writer) -> None:
    """Terraform's DELETE: an empty state follows; what was there stays in the history."""
    newest = newest_version(spec)
    if newest is not None:
        body = empty(serial=newest.serial + 1, lineage=newest.lineage)
        write_state(spec=spec, body=body, lock_id=lock_id, writer=writer)


def import_state(*, spec: Spec, body: bytes, imported_by: User) -> StateVersion:
    """Take over a state file that was made elsewhere, with its lineage and its serial."""
    document = StateDocument.read(body)
    version = _seal_version(spec, document, Writer(user=imported_by), origin=Origin.UPLOAD)
    with transaction.atomic(), hold_lock(spec=spec, user=imported_by, operation="upload"):
        _keep(version, newest_version(spec))
        _audit(version, imported_by, AuditAction.STATE_UPLOADED)
    return version


def roll_back(*, spec: Spec, serial: int, confirmation: str, requested_by: User) -> StateVersion:
    """Make an older version the newest again, as a new version with a higher serial.

    This changes what Terraform believes, and nothing of the infrastructure: the next plan shows the rest.
    """
    if confirmation != spec.name:
        raise ConfirmationMismatch(
            f"The name does not match: type {spec.name!r} to confirm. Nothing was changed."
        )
    with transaction.atomic(), hold_lock(spec=spec, user=requested_by, operation="roll back"):
        newest, older = newest_version(spec), version_with_body(spec, serial)
        if newest is None or newest.serial == older.serial:
            raise Conflict(f"Serial {serial} is the newest version: there is nothing to roll back.")
        document = StateDocument.read(read_version(version=older)).with_serial(newest.serial + 1)
        version = _seal_version(spec, document, Writer(user=requested_by), origin=Origin.ROLL_BACK)
        version.restored_serial = serial
        _keep(version, newest)
        _audit(version, requested_by, AuditAction.STATE_ROLLED_BACK, restored_serial=serial)
    return version


def note_download(*, version: StateVersion, downloaded_by: User) -> None:
    """Record who downloaded a whole state, which holds secrets in clear."""
    _audit(version, downloaded_by, AuditAction.STATE_DOWNLOADED)


def _seal_version(
    spec: Spec, document: StateDocument, writer: Writer, *, origin: Origin | None = None
) -> StateVersion:
    version = StateVersion(
        spec=spec,
        serial=document.serial,
        lineage=document.lineage,
        terraform_version=document.terraform_version,
        resource_count=document.resource_count,
        size_bytes=len(document.body),
        sha256=document.sha256,
        origin=origin or (Origin.ATTEMPT if writer.user is None else Origin.PERSON),
        job_id=writer.job_id,
        claim_id=writer.claim_id,
        author=writer.user,
    )
    version.sealed_body = seal(compressed(document.body), context=_context(version))
    return version


def _keep(version: StateVersion, newest: StateVersion | None) -> None:
    if newest is not None:
        _require_successor(newest, version)
    try:
        with transaction.atomic():
            version.save(force_insert=True)
    except IntegrityError as error:
        # The index decides, not the check before it.
        raise StateOlder(
            f"Serial {version.serial} was just written by another request. Nothing was changed."
        ) from error
    publish_on_commit(topics.organization(version.spec.organization_id, "specs"))


def _require_lock(spec: Spec, lock_id: str, writer: Writer) -> None:
    """Holds the lock's row until the version is stored: writers queue up here, and unlocking waits."""
    lock = StateLock.objects.select_for_update(of=("self",)).filter(spec=spec).first()
    if lock is None:
        raise StateNotLocked
    if lock.lock_id != lock_id or not writer.holds(lock):
        raise lock_refusal(lock)


def _require_successor(newest: StateVersion, version: StateVersion) -> None:
    if newest.lineage != version.lineage:
        raise StateLineageDiffers(
            f"The stored state has lineage {newest.lineage}, this one {version.lineage}: it describes other "
            "infrastructure. Nothing was written."
        )
    if version.serial <= newest.serial:
        raise StateOlder(
            f"The stored state has serial {newest.serial}; {version.serial} does not follow it. Nothing was "
            "written. To return to an older version, roll back on the State page."
        )


def _audit(version: StateVersion, actor: User, action: AuditAction, **data: int) -> None:
    spec = version.spec
    record(
        organization=spec.organization, actor=actor, action=action, target=spec, serial=version.serial, **data
    )


def _context(version: StateVersion) -> str:
    return f"state:{version.pk}"
