"""One run of the janitor: take back lost jobs, end those that took too long, and clean up."""

import logging
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import DurationField, ExpressionWrapper, F, Q, QuerySet, Value
from django.db.models.functions import Now

from console.audit.actions import AuditAction
from console.audit.models import ActorKind
from console.audit.services import record
from console.identities.keys import rotate_when_due
from console.jobs import queue
from console.jobs.announce import announce
from console.jobs.attempts import retry_delay
from console.jobs.ending import end
from console.jobs.lifecycle import CLAIMED, PROCESSING, STOPPED, TIMED_OUT, Ending, after_loss
from console.jobs.log.partitions import keep_partitions
from console.jobs.models import Job, JobClaim, Outcome
from console.live.beat import GONE_AFTER_SECONDS
from console.plans.expiry import act_on_expired_specs
from console.runners.presence import mark_silent_runners_offline
from console.state.abandoned import release_abandoned_locks
from runner.protocol import CancelReason

#: How many lost claims one run takes back; the next run takes the next ones.
BATCH = 500
#: After its time a job is asked to stop; it has this long to stop gracefully before it is fenced.
TIMEOUT_GRACE_SECONDS = 60
#: A PROCESSING job with neither a heartbeat nor a log line for this long is lost, whatever its lease says.
SILENT_SECONDS = 300

SYSTEM = queue.Actor(ActorKind.SYSTEM, None, "janitor")

logger = logging.getLogger("slipway.janitor")


def run_once() -> None:
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


#: After a time without a janitor, or without a console, runners get one lease to come back.
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
    """Return whether no lease may be taken back now, because runners could not renew theirs."""
    with connection.cursor() as cursor:
        cursor.execute(BE_PATIENT, {"lease": settings.SLIPWAY_LEASE_SECONDS, "gone": GONE_AFTER_SECONDS})
        (patient,) = cursor.fetchone()
    return bool(patient)


def take_back_lost_jobs() -> int:
    """End the attempts whose lease ran out, and those that have been silent for too long."""
    silent = Now() - Value(timedelta(seconds=SILENT_SECONDS), output_field=DurationField())
    quiet = Q(job__status=PROCESSING, heartbeat_at__lt=silent) & (Q(log_at=None) | Q(log_at__lt=silent))
    lost = JobClaim.objects.filter(Q(expires_at__lt=Now()) | quiet).select_related("job", "runner")
    count = 0
    for claim in lost.defer("job__config_snapshot").order_by("expires_at")[:BATCH]:
        count += _take_back(claim)
    return count


def request_timeouts() -> int:
    """Ask attempts that are past their time to stop, through their next heartbeat."""
    overdue = _overdue_jobs().filter(cancel_requested_at=None).select_related("organization")
    return sum(_request_timeout(job) for job in overdue.defer("config_snapshot")[:BATCH])


@transaction.atomic
def _request_timeout(job: Job) -> int:
    updated = Job.objects.filter(
        pk=job.pk,
        status__in=(CLAIMED, PROCESSING),
        cancel_requested_at=None,
        attempt_count=job.attempt_count,
    ).update(cancel_requested_at=Now(), cancel_reason=CancelReason.TIMEOUT)
    if updated:
        record(
            organization=job.organization, actor=None, action=AuditAction.JOB_TIMEOUT_REQUESTED, target=job
        )
        announce(job_id=job.pk, organization_id=job.organization_id)
    return updated


def end_timed_out_jobs() -> int:
    """End attempts that are past their time and did not stop when they were asked to."""
    grace = Value(timedelta(seconds=TIMEOUT_GRACE_SECONDS), output_field=DurationField())
    overdue = _overdue_jobs().filter(cancel_requested_at__lt=Now() - grace)
    ended = 0
    rows = overdue.values_list("pk", "claim__claim_id", "cancel_reason")
    for job_id, claim_id, cancel_reason in rows[:BATCH]:
        ending = STOPPED[CancelReason(cancel_reason)]
        ended += _end(claim_id, ending, outcome=Outcome.CANCELLED, reason=TIMED_OUT.error_message or "")
        logger.warning("job %s did not stop after its timeout; its attempt was ended", job_id)
    return ended


def _overdue_jobs() -> QuerySet[Job]:
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
    try:
        moved = end(
            claim_id=claim_id,
            ending=ending,
            attempt=queue.AttemptEnd(outcome=outcome, reason=reason, orphaned=True),
            actor=SYSTEM,
            seen_status=seen_status,
            retry_delay_seconds=retry_delay_seconds,
            only_lost_after_seconds=only_lost_after_seconds,
        )
    except (InterfaceError, OperationalError):
        raise  # the database is away: nothing else works either
    except Exception:
        # A hook refused the ending of this job. It must not keep the janitor from all others.
        logger.exception("the attempt %s could not be ended; the janitor tries again", claim_id)
        return 0
    return int(moved is not None)
