"""What becomes of a spec whose time has passed: nothing more is applied, and its destroy is asked for."""

import logging

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from console.audit.actions import AuditAction
from console.audit.models import AuditEvent
from console.audit.services import record
from console.errors import Draining, JobActive, SlipwayError, SpecExpired
from console.jobs import purpose
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
    """Refuse to apply anything more to what was meant to be gone by now."""
    if spec.is_expired:
        raise SpecExpired(
            f"{spec.name} expired at {spec.expires_at:%Y-%m-%d %H:%M} UTC, so nothing more is applied to it. "
            "Set a later expiry in its settings, then apply; or destroy it.",
            expired_at=spec.expires_at.isoformat() if spec.expires_at else None,
        )


def what_became_of(spec: Spec) -> str:
    """What the janitor did about an expiry that has passed, in a sentence; empty while it has not looked."""
    if not spec.is_expired or spec.expiry_acted_for != spec.expires_at:
        return ""
    events = AuditEvent.objects.filter(target_id=spec.pk, action=AuditAction.SPEC_EXPIRED)
    noted = events.order_by("-id").first()
    if noted is None:
        return ""
    job = noted.data.get("job")
    return {
        DESTROYING: f"Job #{job} destroys it.",
        PLANNED: f"Job #{job} plans its destroy, for people to review.",
        NOTHING: "There was nothing to destroy.",
        REFUSED: f"Its destroy could not be queued: {noted.data.get('reason')}",
    }.get(str(noted.data.get("outcome")), "")


def act_on_expired_specs() -> int:
    """Ask for the destroy of each spec whose expiry has passed. Safe to do twice, and by two at once."""
    return sum(_act(spec) for spec in _expired())


def _expired() -> list[Spec]:
    """Those that nobody has acted on for this expiry, and that no job holds now."""
    new = Q(expiry_acted_for=None) | ~Q(expiry_acted_for=F("expires_at"))
    held = Job.objects.filter(spec=OuterRef("pk"), status__in=ACTIVE_STATUSES)
    found = Spec.objects.filter(new, expires_at__lte=Now(), archived_at=None).exclude(Exists(held))
    return list(found.select_related("organization").order_by("expires_at")[:BATCH])


def _act(spec: Spec) -> int:
    try:
        with transaction.atomic():
            if not _take(spec):
                return 0  # another janitor was quicker, or somebody has changed the expiry
            _ask_for_destroy(spec)
    except (JobActive, Draining) as error:
        logger.info("%s has expired; it is looked at again later: %s", spec, error)
        return 0
    return 1


def _take(spec: Spec) -> bool:
    """The row decides who acts: whoever sets this, in the transaction that queues the job."""
    mine = Spec.objects.filter(pk=spec.pk, expires_at=spec.expires_at)
    free = mine.filter(Q(expiry_acted_for=None) | ~Q(expiry_acted_for=spec.expires_at))
    return bool(free.update(expiry_acted_for=spec.expires_at))


def _ask_for_destroy(spec: Spec) -> None:
    try:
        job = _queued(spec) if may_have_resources(spec) else None
    except (JobActive, Draining):
        raise
    except SlipwayError as refusal:
        # Trying again every second would not help: a person reads why, and destroys it or changes the expiry.
        _note(spec, outcome=REFUSED, code=refusal.code, reason=str(refusal))
        return
    if job is None:
        _note(spec, outcome=NOTHING)
    else:
        _note(spec, outcome=DESTROYING if job.type == JobType.DESTROY else PLANNED, job=job.number)


def _queued(spec: Spec) -> Job:
    """A plan to review; where people have said that changes apply by themselves, the destroy itself."""
    if spec.auto_apply and not spec.protected:
        return request_job(spec=spec, type=JobType.DESTROY, requested_by=None)
    newest = current_revision(spec)
    return request_job(
        spec=spec,
        type=JobType.PLAN,
        requested_by=None,
        snapshot=purpose.to_destroy(current_document(spec, newest)),
        revision=newest.number,
    )


def _note(spec: Spec, **data: str | int) -> None:
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
