"""Connection tests and resource scans of cloud identities: requesting them, and keeping their results."""

from typing import Any

from django.db import IntegrityError, transaction
from django.urls import reverse

from console.accounts.models import User
from console.errors import Conflict, JobActive
from console.identities import services as identities
from console.identities.models import CloudIdentity
from console.identities.resources import delete_lists_not_scanned_since
from console.identities.restrictions import pool_to_test_with
from console.identities.snapshot import snapshot_field
from console.jobs import hooks
from console.jobs.hooks import JobEnd
from console.jobs.lifecycle import ACTIVE_STATUSES
from console.jobs.models import Job
from console.jobs.queue import NewJob
from console.jobs.services import enqueue
from console.jobs.types import kind_of
from console.runners.models import Pool
from runner.protocol import JobStatus, JobType
from specs.models import Spec
from specs.snapshot import snapshot_hash

#: One test reaches the backends of this many Specs.
MAX_BACKENDS = 50


# ── requesting a test or a scan ──────────────────────────────────────────────────────────────────


def request_connection_test(*, identity: CloudIdentity, requested_by: User | None) -> Job:
    """Queue a test of the identity; when it passes, its resources are scanned automatically."""
    return _request(identity=identity, type=JobType.CONNECTION_TEST, requested_by=requested_by)


def request_fetch(*, identity: CloudIdentity, requested_by: User | None) -> Job:
    """Queue a scan of the account's resources."""
    return _request(identity=identity, type=JobType.FETCH_RESOURCES, requested_by=requested_by)


def _request(*, identity: CloudIdentity, type: JobType, requested_by: User | None) -> Job:
    pool = pool_to_test_with(identity)
    if pool is None:
        raise Conflict(f"{identity.name} allows no existing pool. Allow one, or create it.")
    try:
        with transaction.atomic():
            return _enqueue(identity, type, pool, requested_by)
    except IntegrityError as error:
        if "job_one_active_per_identity_and_type" not in str(error):
            raise
        # The index decides, not a check before: two clicks can race.
        raise _held(identity, type) from error


def _enqueue(identity: CloudIdentity, type: JobType, pool: Pool, requested_by: User | None) -> Job:
    document, kind = identity_document(identity), kind_of(type)
    new = NewJob(
        organization_id=identity.organization_id,
        type=type.value,
        identity_id=identity.pk,
        pool_id=pool.pk,
        config_snapshot=document,
        snapshot_hash=snapshot_hash(document),
        max_retries=kind.max_retries,
        timeout_seconds=kind.timeout_seconds,
    )
    job = enqueue(new, requested_by=requested_by)
    identities.announce(identity)
    return job


def identity_document(identity: CloudIdentity) -> dict[str, Any]:
    """Return the snapshot of a test or a scan: the identity, the state backends to reach, and the kinds."""
    description = {"name": identity.name, "provider": identity.provider}
    return {
        "format": 1,
        "identity": {**snapshot_field(identity), **description},
        "backends": _backends(identity),
        "kinds": list(identity.cloud.resource_kinds),
    }


def _backends(identity: CloudIdentity) -> list[dict[str, Any]]:
    """Return the backends outside the console that the identity's Specs use, each once."""
    specs = Spec.objects.filter(identity=identity).select_related("organization").order_by("name")
    backends: dict[str, dict[str, Any]] = {}
    for spec in specs[:MAX_BACKENDS]:
        for hook in hooks.snapshot_fields:
            backend = hook(spec).get("backend")
            if backend is not None and backend["kind"] != "console":
                backends.setdefault(snapshot_hash(backend), backend)
    return list(backends.values())


def _held(identity: CloudIdentity, type: JobType) -> JobActive:
    holder = Job.objects.filter(identity=identity, type=type, status__in=ACTIVE_STATUSES).first()
    if holder is None:
        return JobActive(f"Another {type} of {identity.name} has just ended. Try again.")
    return JobActive(
        f"{holder} of {identity.name} is {holder.status}. Wait for it, or cancel it.",
        holder_url=reverse("job", args=[identity.organization.slug, holder.number]),
        holder_id=str(holder.pk),
    )


# ── keeping their results ────────────────────────────────────────────────────────────────────────


def keep_test(end: JobEnd) -> None:
    """After a CONNECTION_TEST, however it ended: keep its checks; when all are well, fetch the resources."""
    identity = end.job.identity
    if identity is None:
        return None
    if was_never_tried(end.job):
        return identities.announce(identity)
    if end.job.status != JobStatus.SUCCESS:
        return _keep_test(identity, end, passed=False)
    passed = not any(
        isinstance(check, dict) and check.get("outcome") == "fail" for check in _checks(end.result)
    )
    _keep_test(identity, end, passed=passed)
    busy = Job.objects.filter(
        identity=identity, type=JobType.FETCH_RESOURCES, status__in=ACTIVE_STATUSES
    ).exists()
    if passed and not busy:
        request_fetch(identity=identity, requested_by=end.job.requested_by)


def keep_fetch(end: JobEnd) -> None:
    """After a FETCH_RESOURCES, however it ended; one that succeeded may have regions that failed."""
    identity = end.job.identity
    if identity is None:
        return None
    if was_never_tried(end.job):
        return identities.announce(identity)
    complete = end.job.status == JobStatus.SUCCESS
    identities.record_fetch(
        identity_id=identity.pk,
        complete=complete,
        error=end.job.error_message,
        job=end.job,
        job_number=end.job.number,
    )
    identities.announce(identity)
    if complete and end.job.started_at is not None:
        delete_lists_not_scanned_since(identity_id=identity.pk, at=end.job.started_at)


def was_never_tried(job: Job) -> bool:
    """Return whether a person cancelled the job before it started: then the last result still counts."""
    return job.status == JobStatus.CANCELLED and job.started_at is None


def _keep_test(identity: CloudIdentity, end: JobEnd, *, passed: bool) -> None:
    identities.record_test(
        identity_id=identity.pk,
        passed=passed,
        result={**end.result, "error": end.job.error_message},
        job=end.job,
        job_number=end.job.number,
    )
    identities.announce(identity)


def _checks(result: dict[str, Any]) -> list[Any]:
    checks = result.get("checks")
    return checks if isinstance(checks, list) else []
