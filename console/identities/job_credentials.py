"""The lifetime guard: until when a job's credentials are good, and whether its kind usually takes longer."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.db.models.fields.json import KeyTransform
from django.utils import timezone

from console.durations import duration
from console.identities.models import CloudIdentity, SignedToken
from console.jobs.lifecycle import POLICIES, SUCCESS
from console.jobs.models import Attempt, Job
from runner.protocol import JobType
from specs.models import Spec

#: What is usual is told by this many of the latest.
LATEST = 10


@dataclass(frozen=True, slots=True)
class Credentials:
    """Whose they are, until when the present ones are good, how often they were renewed, and a warning."""

    identity: CloudIdentity
    expires_at: datetime | None
    renewals: int
    warning: str


def credentials_of(job: Job, attempts: list[Attempt]) -> Credentials | None:
    """Of a job that acts as an identity; None for one that does not, or whose identity is gone."""
    identity = _identity_of(job)
    if identity is None:
        return None
    expires_at, renewals = _present(identity, attempts[-1]) if attempts and not job.is_final else (None, 0)
    warning = (
        "" if job.is_final or job.spec is None else lifetime_warning(job.spec, JobType(job.type), identity)
    )
    return Credentials(identity, expires_at, renewals, warning)


def lifetime_warning(spec: Spec, type: JobType, identity: CloudIdentity | None) -> str:
    """One sentence for people, before it starts, when it will probably outlive its credentials."""
    if identity is None or not POLICIES[type].changes_infrastructure or not identity.cloud.has_sessions:
        return ""
    usual, session = usual_seconds(spec, type), identity.session_seconds
    if usual is None or usual <= session:
        return ""
    renewed = (
        "The runner’s own role renews it, but what a provider keeps of the old session fails then."
        if identity.is_assumed_by_runner
        else "It is renewed on the way; a provider that keeps what it was given at the start fails then."
    )
    return (
        f"A {type} of {spec.name} usually takes {duration(usual)}, and a session of {identity.name} lasts "
        f"{duration(session)}. {renewed} Ask for longer sessions, or make the Spec smaller."
    )


def usual_seconds(spec: Spec, type: JobType) -> float | None:
    """The median of the latest that succeeded; None when there was none."""
    done = Job.objects.filter(spec=spec, type=type, status=SUCCESS, started_at__isnull=False).order_by("-id")
    times = done.values_list("started_at", "finished_at")[:LATEST]
    took = [(end - begin).total_seconds() for begin, end in times if begin and end]
    return median(took) if took else None


def _identity_of(job: Job) -> CloudIdentity | None:
    if job.identity_id is not None:
        return CloudIdentity.objects.filter(pk=job.identity_id).first()
    named: Any = (
        Job.objects.filter(pk=job.pk)
        .values_list(KeyTransform("identity", "config_snapshot"), flat=True)
        .first()
    )
    if not isinstance(named, dict):
        return None
    return CloudIdentity.objects.filter(pk=named["id"], organization_id=job.organization_id).first()


def _present(identity: CloudIdentity, attempt: Attempt) -> tuple[datetime | None, int]:
    signed = SignedToken.objects.filter(pk=attempt.claim_id).first()
    if signed is not None:
        return signed.session_ends_at, signed.count - 1
    if not identity.is_assumed_by_runner or attempt.started_at is None:
        return None, 0
    return _renewed_at_half(attempt.started_at, timedelta(seconds=identity.session_seconds))


def _renewed_at_half(started_at: datetime, session: timedelta) -> tuple[datetime, int]:
    """Of keys that the runner renews by its own role the console hears nothing: told by the runner's rule."""
    renewals = int((timezone.now() - started_at) / (session / 2))
    return started_at + renewals * session / 2 + session, renewals
