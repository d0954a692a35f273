"""The cloud identity of a job: its reference in the snapshot, its check, and its part of a claim."""

from typing import Any
from uuid import UUID

from console.errors import IdentityChanged, IdentityNotAllowed
from console.identities.models import CloudIdentity
from console.identities.restrictions import require_allowed, require_pool
from console.identities.snapshot import outcome_digest, snapshot_field
from console.jobs.models import Job
from runner.protocol import IdentityAccess
from specs.models import Spec


def identity_field(spec: Spec) -> dict[str, Any]:
    """Return the identity's field of the next job's snapshot: see `hooks.SnapshotFields`."""
    return {"identity": snapshot_field(spec.identity)} if spec.identity is not None else {}


def require_identity(spec: Spec, snapshot: dict[str, Any]) -> None:
    """Refuse a job that would act as an identity which does not allow it, or is no longer as it was."""
    if reference := snapshot.get("identity"):
        identity = usable_identity(
            reference, organization_id=spec.organization_id, spec=spec, pool_id=spec.pool_id
        )
        require_unchanged(identity, reference)


def usable_identity(
    reference: dict[str, Any], *, organization_id: UUID, spec: Spec | None, pool_id: UUID
) -> CloudIdentity:
    """Return the identity of a snapshot, if it still allows this Spec, its environment and this pool."""
    identity = CloudIdentity.objects.filter(pk=reference["id"], organization_id=organization_id).first()
    if identity is None:
        raise IdentityNotAllowed("This job's cloud identity was deleted. Choose another one, then try again.")
    if spec is None:
        require_pool(identity=identity, pool_id=pool_id)
    else:
        require_allowed(identity=identity, spec=spec, pool_id=pool_id)
    return identity


def require_unchanged(identity: CloudIdentity, reference: dict[str, Any]) -> None:
    """Refuse to apply with another role what was reviewed with one."""
    if reference["settings_sha256"] != outcome_digest(identity):
        raise IdentityChanged(
            f"Cloud identity {identity.name} changed since this job was requested. Plan again."
        )


def identity_access(job: Job, claim_id: UUID) -> dict[str, Any]:
    """Return how the attempt obtains its credentials. Raising refuses the job for good."""
    reference = job.config_snapshot.get("identity")
    if not reference:
        return {}
    spec = Spec.objects.filter(pk=job.spec_id).first() if job.spec_id else None
    identity = usable_identity(reference, organization_id=job.organization_id, spec=spec, pool_id=job.pool_id)
    if spec is not None:  # a test is of the identity as it is now
        require_unchanged(identity, reference)
    return {
        "identity": IdentityAccess(
            identity_id=str(identity.pk),
            name=identity.name,
            provider=identity.provider,
            settings=claim_settings(identity, job=job, spec=spec),
            audience=identity.audience,
        )
    }


def claim_settings(identity: CloudIdentity, *, job: Job, spec: Spec | None) -> dict[str, Any]:
    return identity.cloud.claim_settings(
        identity.settings,
        # As it was reviewed, whatever the Spec says by now.
        region=job.config_snapshot.get("region") or "",
        external_id=identity.external_id or "",
        # The cloud's own log names the job by it.
        session_name=f"slipway-{job.number}-{spec.slug if spec else identity.slug}",
    )
