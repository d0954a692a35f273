"""The cloud identity of a job: what its snapshot names, whether it may be used, what a claim says of it."""

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
    """For the document of the spec's next job: see `hooks.snapshot_fields`. Nothing when it has none."""
    return {"identity": snapshot_field(spec.identity)} if spec.identity is not None else {}


def require_identity(spec: Spec, snapshot: dict[str, Any]) -> None:
    """Refuse a job that would act as an identity which does not allow it, or is no longer as it was."""
    if named := snapshot.get("identity"):
        identity = usable_identity(
            named, organization_id=spec.organization_id, spec=spec, pool_id=spec.pool_id
        )
        require_unchanged(identity, named)


def usable_identity(
    named: dict[str, Any], *, organization_id: UUID, spec: Spec | None, pool_id: UUID
) -> CloudIdentity:
    """The identity that a snapshot names, if it still allows this Spec, its environment and this pool."""
    identity = CloudIdentity.objects.filter(pk=named["id"], organization_id=organization_id).first()
    if identity is None:
        raise IdentityNotAllowed("This job's cloud identity was deleted. Choose another one, then ask again.")
    if spec is None:
        require_pool(identity=identity, pool_id=pool_id)
    else:
        require_allowed(identity=identity, spec=spec, pool_id=pool_id)
    return identity


def require_unchanged(identity: CloudIdentity, named: dict[str, Any]) -> None:
    """What was reviewed with one role is not applied with another."""
    if named["settings_sha256"] != outcome_digest(identity):
        raise IdentityChanged(f"Cloud identity {identity.name} changed since this was asked for. Plan again.")


def identity_access(job: Job, claim_id: UUID) -> dict[str, Any]:
    """For a claim: how the attempt obtains its credentials. Raising refuses the job for good."""
    named = job.config_snapshot.get("identity")
    if not named:
        return {}
    spec = Spec.objects.filter(pk=job.spec_id).first() if job.spec_id else None
    identity = usable_identity(named, organization_id=job.organization_id, spec=spec, pool_id=job.pool_id)
    if spec is not None:  # a test is of the identity as it is now
        require_unchanged(identity, named)
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
