"""Signing tokens for attempts: only for the one that holds the job, and only while its lease runs."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Now

from console.audit.actions import AuditAction
from console.audit.models import ActorKind, AuditEvent
from console.errors import IdentityNeedsNoToken, StaleClaim
from console.identities.claims import usable_identity
from console.identities.issuer import TOKEN_SECONDS, Named, Signed, sign, subject
from console.identities.models import CloudIdentity, SignedToken
from console.jobs.models import Job, JobClaim
from console.jobs.queue import Held
from console.runners.services import KnownRunner
from runner.protocol import IdentityTokenAnswer


def sign_token(*, held: Held, runner: KnownRunner) -> IdentityTokenAnswer:
    """Sign a token for this attempt and its identity's cloud. It is returned and never stored."""
    claim, now = _held_claim(held)
    job = claim.job
    reference: dict[str, Any] | None = claim.named  # type: ignore[attr-defined]
    if not reference:
        raise IdentityNeedsNoToken
    identity = usable_identity(
        reference, organization_id=job.organization_id, spec=job.spec, pool_id=job.pool_id
    )
    audience = identity.audience
    if not audience:
        raise IdentityNeedsNoToken
    signed = sign(
        subject=_subject(job, identity), audience=audience, claims=_claims(job, identity, runner), now=now
    )
    _record_token(signed, held=held, identity=identity, audience=audience, job=job, runner=runner, now=now)
    return IdentityTokenAnswer(token=signed.token, expires_in_seconds=TOKEN_SECONDS)


def _held_claim(held: Held) -> tuple[JobClaim, datetime]:
    """Return the claim while its lease runs: after that, another runner may have the job any moment."""
    claims = JobClaim.objects.filter(
        job_id=held.job_id, claim_id=held.claim_id, runner_id=held.runner_id, expires_at__gt=Now()
    )
    claim = (
        claims.select_related("job__organization", "job__spec", "job__pool", "job__requested_by")
        .defer("job__config_snapshot", "job__result")
        .annotate(now=Now(), named=KeyTransform("identity", "job__config_snapshot"))
        .first()
    )
    if claim is None:
        raise StaleClaim
    return claim, claim.now


def _subject(job: Job, identity: CloudIdentity) -> str:
    return subject(
        organization=Named(job.organization.slug, job.organization_id),
        action=job.kind.cloud_action,
        spec=Named(job.spec.slug, job.spec.pk) if job.spec else None,
        environment=job.spec.environment if job.spec else "",
        identity=Named(identity.slug, identity.pk),
    )


def _claims(job: Job, identity: CloudIdentity, runner: KnownRunner) -> dict[str, Any]:
    """Return the claims for the cloud's own log: the job, the attempt, the requester and the runner."""
    return {
        "organization": job.organization.slug,
        "organization_id": str(job.organization_id),
        "spec": job.spec.slug if job.spec else "",
        "spec_id": str(job.spec_id or ""),
        "environment": job.spec.environment if job.spec else "",
        "identity": identity.slug,
        "identity_id": str(identity.pk),
        "action": job.kind.cloud_action,
        "job_type": job.type,
        "job_id": str(job.pk),
        "job_number": job.number,
        "attempt": job.attempt_count,
        "runner": runner.name,
        "runner_id": str(runner.id),
        "pool": job.pool.name,
        "requested_by": job.requested_by.get_username() if job.requested_by else "",
    }


@transaction.atomic
def _record_token(
    signed: Signed,
    *,
    held: Held,
    identity: CloudIdentity,
    audience: str,
    job: Job,
    runner: KnownRunner,
    now: datetime,
) -> None:
    """Record that a token was given, to whom and for what. Never the token."""
    times = {
        "signed_at": now,
        "expires_at": signed.expires_at,
        "session_ends_at": now + timedelta(seconds=identity.session_seconds),
    }
    if not SignedToken.objects.filter(pk=held.claim_id).update(**times, count=F("count") + 1):
        SignedToken.objects.create(claim_id=held.claim_id, identity=identity, **times)
    AuditEvent.objects.create(
        organization_id=job.organization_id,
        actor_kind=ActorKind.RUNNER,
        actor_id=runner.id,
        actor_name=runner.name,
        action=AuditAction.IDENTITY_TOKEN_SIGNED,
        target_kind="cloudidentity",
        target_id=identity.pk,
        data={
            "job": str(job.pk),
            "claim_id": str(held.claim_id),
            "token_id": str(signed.id),
            "key": signed.kid,
            "audience": audience,
            "subject": signed.subject,
        },
    )
