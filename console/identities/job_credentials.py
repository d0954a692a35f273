"""The expiry of a job's credentials, and a warning when such jobs usually take longer."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.db.models.fields.json import KeyTransform
from django.utils import timezone

from console.durations import duration
from console.identities.models import CloudIdentity, SignedToken
from console.jobs.lifecycle import SUCCESS
from console.jobs.models import Attempt, Job
from console.jobs.types import kind_of
from runner.protocol import JobType
from specs.models import Spec

#: The usual duration is that of this many of the latest jobs.
SAMPLE_SIZE = 10


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a job: their identity, expiry, number of renewals, and a warning."""

    identity: CloudIdentity
    expires_at: datetime | None
    renewals: int
    warning: str


def credentials_of(job: Job, attempts: list[Attempt]) -> Credentials | None:
    """Return the credentials of a job that acts as an identity, unless that was deleted."""
    identity = _identity_of(job)
    if identity is None:
        return None
    expires_at, renewals = _expiry_of(identity, attempts[-1]) if attempts and not job.is_final else (None, 0)
    warning = (
        "" if job.is_final or job.spec is None else lifetime_warning(job.spec, JobType(job.type), identity)
    )
    return Credentials(identity, expires_at, renewals, warning)


def lifetime_warning(spec: Spec, type: JobType, identity: CloudIdentity | None) -> str:
    """Return a sentence for people when a job will probably outlive its credentials."""
    if identity is None or not kind_of(type).changes_infrastructure or not identity.cloud.has_sessions:
        return ""
    usual, session = usual_seconds(spec, type), identity.session_seconds
    if usual is None or usual <= session:
        return ""
    renewed = (
        "The runner’s own role renews it, but a provider that keeps the old session fails then."
        if identity.is_assumed_by_runner
        else "It is renewed while the job runs; a provider that keeps its first credentials fails then."
    )
    return (
        f"A {type} of {spec.name} usually takes {duration(usual)}, and a session of {identity.name} lasts "
        f"{duration(session)}. {renewed} Ask for longer sessions, or make the Spec smaller."
    )


def usual_seconds(spec: Spec, type: JobType) -> float | None:
    """Return the median duration of the latest jobs that succeeded; None when there are none."""
    done = Job.objects.filter(spec=spec, type=type, status=SUCCESS, started_at__isnull=False).order_by("-id")
    times = done.values_list("started_at", "finished_at")[:SAMPLE_SIZE]
    took = [(end - begin).total_seconds() for begin, end in times if begin and end]
    return median(took) if took else None


def _identity_of(job: Job) -> CloudIdentity | None:
    if job.identity_id is not None:
        return CloudIdentity.objects.filter(pk=job.identity_id).first()
    reference: Any = (
        Job.objects.filter(pk=job.pk)
        .values_list(KeyTransform("identity", "config_snapshot"), flat=True)
        .first()
    )
    if not isinstance(reference, dict):
        return None
    return CloudIdentity.objects.filter(pk=reference["id"], organization_id=job.organization_id).first()


def _expiry_of(identity: CloudIdentity, attempt: Attempt) -> tuple[datetime | None, int]:
    signed = SignedToken.objects.filter(pk=attempt.claim_id).first()
    if signed is not None:
        return signed.session_ends_at, signed.count - 1
    if not identity.is_assumed_by_runner or attempt.started_at is None:
        return None, 0
    return _renewed_at_half(attempt.started_at, timedelta(seconds=identity.session_seconds))


def _renewed_at_half(started_at: datetime, session: timedelta) -> tuple[datetime, int]:
    """Compute the expiry from the runner's own rule: the console hears nothing of these renewals."""
    renewals = int((timezone.now() - started_at) / (session / 2))
    return started_at + renewals * session / 2 + session, renewals
