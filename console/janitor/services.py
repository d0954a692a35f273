"""One look of the janitor: what was lost is taken back, what took too long is ended."""

import logging
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import DurationField, ExpressionWrapper, F, Q, QuerySet, Value
from django.db.models.functions import Now

from console.audit.actions import AuditAction
from console.audit.models import ActorKind
from console.audit.services import record
from console.identities.keys import rotate_when_due
from console.jobs import hooks, queue
from console.jobs.attempts import announce_moved, retry_delay
from console.jobs.lifecycle import CLAIMED, PROCESSING, STOPPED, TIMED_OUT, Ending, after_loss
from console.jobs.log.partitions import keep_partitions
from console.jobs.models import Job, JobClaim, Outcome
from console.jobs.services import announce
from console.live.beat import GONE_AFTER_SECONDS
from console.plans.expiry import act_on_expired_specs
from console.runners.presence import mark_silent_runners_offline
from console.state.lost import release_abandoned_locks
from runner.protocol import CancelReason

#: How many lost claims one look takes back; the next look takes the next ones.
BATCH = 500
#: After its time a job is asked to stop; it has this long to stop gracefully before it is fenced.
TIMEOUT_GRACE_SECONDS = 60
#: A PROCESSING job with neither a heartbeat nor a log line for this long is lost, whatever its lease says.
SILENT_SECONDS = 300

SYSTEM = queue.Actor(ActorKind.SYSTEM, None, "janitor")

logger = logging.getLogger("slipway.janitor")


def look() -> None:
    """Do everything once. Safe to do twice, by two janitors at once, and to be killed in."""
    patient = is_patient()
    mark_silent_runners_offline()
    request_timeouts()
    if not patient:
        take_back_lost_jobs()
        end_timed_out_jobs()
    release_abandoned_locks()
    act_on_expired_specs()
    rotate_when_due()
    keep_partitions()


#: Nobody looked for a while, or no console served: runners could not renew and get one lease to come back.
BE_PATIENT = """
INSERT INTO janitor_watch (id, looked_at, patient_until)
VALUES (1, now(), now() + make_interval(secs => %(lease)s))
ON CONFLICT (id) DO UPDATE SET
    looked_at = now(),
    patient_until = CASE
        WHEN janitor_watch.looked_at < now() - make_interval(secs => %(gone)s)
          OR NOT EXISTS (SELECT FROM live_consolebeat WHERE beat_at > now() - make_interval(secs => %(gone)s))
        THEN now() + make_interval(secs => %(lease)s)
        ELSE janitor_watch.patient_until
    END
RETURNING patient_until > now()
"""


def is_patient() -> bool:
    """Whether leases must be left alone now, because runners could not renew them."""
    with connection.cursor() as cursor:
        cursor.execute(BE_PATIENT, {"lease": settings.SLIPWAY_LEASE_SECONDS, "gone": GONE_AFTER_SECONDS})
        (patient,) = cursor.fetchone()
    return bool(patient)


def take_back_lost_jobs() -> int:
    """End the attempts whose lease ran out, and those that have been silent for too long."""
    silent = Now() - Value(timedelta(seconds=SILENT_SECONDS), output_field=DurationField())
    quiet = Q(job__status=PROCESSING, heartbeat_at__lt=silent) & (Q(log_at=None) | Q(log_at__lt=silent))
    lost = JobClaim.objects.filter(Q(expires_at__lt=Now()) | quiet).select_related("job", "runner")
    taken = 0
    for claim in lost.defer("job__config_snapshot").order_by("expires_at")[:BATCH]:
        taken += _take_back(claim)
    return taken


def request_timeouts() -> int:
    """Ask attempts that are past their time to stop, through their next heartbeat."""
    overdue = _past_timeout().filter(cancel_requested_at=None).select_related("organization")
    return sum(_request_timeout(job) for job in overdue.defer("config_snapshot")[:BATCH])


@transaction.atomic
def _request_timeout(job: Job) -> int:
    asked = Job.objects.filter(
        pk=job.pk,
        status__in=(CLAIMED, PROCESSING),
        cancel_requested_at=None,
        attempt_count=job.attempt_count,
    ).update(cancel_requested_at=Now(), cancel_reason=CancelReason.TIMEOUT)
    if asked:
        record(
            organization=job.organization, actor=None, action=AuditAction.JOB_TIMEOUT_REQUESTED, target=job
        )
        announce(job)
    return asked


def end_timed_out_jobs() -> int:
    """Fence attempts that are past their time and did not stop when asked, whoever asked."""
    grace = Value(timedelta(seconds=TIMEOUT_GRACE_SECONDS), output_field=DurationField())
    overdue = _past_timeout().filter(cancel_requested_at__lt=Now() - grace)
    ended = 0
    for job_id, claim_id, asked in overdue.values_list("pk", "claim__claim_id", "cancel_reason")[:BATCH]:
        ending = STOPPED[CancelReason(asked)]
        ended += _end(claim_id, ending, outcome=Outcome.CANCELLED, reason=TIMED_OUT.error_message or "")
        logger.warning("job %s did not stop after its timeout; its attempt was fenced", job_id)
    return ended


def _past_timeout() -> QuerySet[Job]:
    allowed = ExpressionWrapper(
        F("timeout_seconds") * Value(timedelta(seconds=1), output_field=DurationField()),
        output_field=DurationField(),
    )
    return Job.objects.filter(
        status__in=(CLAIMED, PROCESSING), claim__isnull=False, claimed_at__lt=Now() - allowed
    )


def _take_back(claim: JobClaim) -> int:
    job = claim.job
    ending = after_loss(
        type=job.type,
        status=job.status,
        retry_count=job.retry_count,
        max_retries=job.max_retries,
        cancel_reason=job.cancel_reason,
        runner=claim.runner.name,
    )
    reason = (
        f"The last heartbeat came at {claim.heartbeat_at:%H:%M:%S} UTC, "
        f"and the lease ran out at {claim.expires_at:%H:%M:%S}."
    )
    logger.warning("job %s lost its runner %s while %s", job.pk, claim.runner.name, job.status)
    return _end(
        claim.claim_id,
        ending,
        outcome=Outcome.LOST,
        reason=reason,
        seen_status=job.status,
        retry_delay_seconds=retry_delay(job.retry_count) if ending.costs_retry else 0.0,
        only_lost_after_seconds=SILENT_SECONDS,
    )


def _end(
    claim_id: UUID,
    ending: Ending,
    *,
    outcome: str,
    reason: str,
    seen_status: str | None = None,
    retry_delay_seconds: float = 0.0,
    only_lost_after_seconds: float | None = None,
) -> int:
    moved = queue.end_attempt(
        claim_id=claim_id,
        ending=ending,
        attempt=queue.AttemptEnd(outcome=outcome, reason=reason, orphaned=True),
        actor=SYSTEM,
        seen_status=seen_status,
        retry_delay_seconds=retry_delay_seconds,
        only_lost_after_seconds=only_lost_after_seconds,
    )
    if moved is None:
        return 0
    announce_moved(moved)
    for hook in hooks.on_lost:
        hook(claim_id)
    return 1
