"""The expiry of a Spec: nothing more is applied, and its destroy is requested."""

import logging

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from console.audit.actions import AuditAction
from console.audit.models import AuditEvent
from console.audit.services import record
from console.errors import Draining, JobActive, SlipwayError, SpecExpired
from console.jobs import intent
from console.jobs.lifecycle import ACTIVE_STATUSES
from console.jobs.models import Job
from console.jobs.services import current_document, request_job
from console.live import topics
from console.live.publish import publish_on_commit
from console.plans.inventory import may_have_resources
from runner.protocol import JobType
from specs.models import Spec
from specs.selectors import current_revision

#: How many expired specs one look of the janitor acts on; the next look takes the next ones.
BATCH = 50

#: What the audit record says that an expiry led to.
DESTROYING, PLANNED, NOTHING, REFUSED = "destroy", "destroy_planned", "nothing_to_destroy", "refused"

logger = logging.getLogger("slipway.expiry")


def require_unexpired(spec: Spec) -> None:
    """Refuse to apply anything more to an expired Spec."""
    if spec.is_expired:
        raise SpecExpired(
            f"{spec.name} expired at {spec.expires_at:%Y-%m-%d %H:%M} UTC, so nothing more is applied to it. "
            "Set a later expiry in its settings, then apply; or destroy it.",
            expired_at=spec.expires_at.isoformat() if spec.expires_at else None,
        )


def describe_expiry_outcome(spec: Spec) -> str:
    """Describe what the janitor did about an expiry that has passed; empty while it has done nothing."""
    if not spec.is_expired or spec.expiry_acted_for != spec.expires_at:
        return ""
    events = AuditEvent.objects.filter(target_id=spec.pk, action=AuditAction.SPEC_EXPIRED)
    event = events.order_by("-id").first()
    if event is None:
        return ""
    job = event.data.get("job")
    return {
        DESTROYING: f"Job #{job} destroys it.",
        PLANNED: f"Job #{job} plans its destroy, for people to review.",
        NOTHING: "There was nothing to destroy.",
        REFUSED: f"Its destroy could not be queued: {event.data.get('reason')}",
    }.get(str(event.data.get("outcome")), "")


def act_on_expired_specs() -> int:
    """Request the destroy of each expired Spec. Safe to do twice, and by two at once."""
    return sum(_act_on_expiry(spec) for spec in _expired_specs())


def _expired_specs() -> list[Spec]:
    """List expired Specs that nobody has acted on and that no job holds."""
    not_acted_on = Q(expiry_acted_for=None) | ~Q(expiry_acted_for=F("expires_at"))
    active_jobs = Job.objects.filter(spec=OuterRef("pk"), status__in=ACTIVE_STATUSES)
    specs = Spec.objects.filter(not_acted_on, expires_at__lte=Now(), archived_at=None).exclude(
        Exists(active_jobs)
    )
    return list(specs.select_related("organization").order_by("expires_at")[:BATCH])


def _act_on_expiry(spec: Spec) -> int:
    try:
        with transaction.atomic():
            if not _claim_expiry(spec):
                return 0  # another janitor was quicker, or somebody has changed the expiry
            _request_destroy(spec)
    except (JobActive, Draining) as error:
        logger.info("%s has expired; it is looked at again later: %s", spec, error)
        return 0
    return 1


def _claim_expiry(spec: Spec) -> bool:
    """The row decides who acts: whoever sets this, in the transaction that queues the job."""
    specs = Spec.objects.filter(pk=spec.pk, expires_at=spec.expires_at)
    free = specs.filter(Q(expiry_acted_for=None) | ~Q(expiry_acted_for=spec.expires_at))
    return bool(free.update(expiry_acted_for=spec.expires_at))


def _request_destroy(spec: Spec) -> None:
    try:
        job = _queue_destroy(spec) if may_have_resources(spec) else None
    except (JobActive, Draining):
        raise
    except SlipwayError as refusal:
        # Trying again every second would not help: a person reads why, and destroys it or changes the expiry.
        _record_expiry(spec, outcome=REFUSED, code=refusal.code, reason=str(refusal))
        return
    if job is None:
        _record_expiry(spec, outcome=NOTHING)
    else:
        _record_expiry(spec, outcome=DESTROYING if job.type == JobType.DESTROY else PLANNED, job=job.number)


def _queue_destroy(spec: Spec) -> Job:
    """A plan to review; where people have said that changes apply by themselves, the destroy itself."""
    if spec.auto_apply and not spec.protected:
        return request_job(spec=spec, type=JobType.DESTROY, requested_by=None)
    newest = current_revision(spec)
    return request_job(
        spec=spec,
        type=JobType.PLAN,
        requested_by=None,
        snapshot=intent.as_destroy(current_document(spec, newest)),
        revision=newest.number,
    )


def _record_expiry(spec: Spec, **data: str | int) -> None:
    assert spec.expires_at is not None, "only what has an expiry expires"
    record(
        organization=spec.organization,
        actor=None,
        action=AuditAction.SPEC_EXPIRED,
        target=spec,
        expired_at=spec.expires_at.isoformat(),
        **data,
    )
    publish_on_commit(topics.organization(spec.organization_id, "specs"))
