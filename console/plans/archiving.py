"""Deleting a Spec: it is archived, so that its jobs, its plans and its audit trail stay readable."""

from django.db import transaction
from django.utils import timezone

from console.accounts.models import Organization, User
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import ConfirmationMismatch, Conflict, JobActive
from console.jobs.lifecycle import ACTIVE_STATUSES
from console.jobs.models import Job
from console.live import topics
from console.live.publish import publish_on_commit
from console.plans.inventory import may_have_resources
from specs.models import Spec


@transaction.atomic
def archive_spec(*, spec: Spec, confirmation: str, archived_by: User) -> Spec:
    """Delete a Spec that has nothing left. Its name is free for another; everything it did stays readable."""
    if confirmation != spec.name:
        raise ConfirmationMismatch(
            f"The name does not match: type {spec.name!r} to confirm. Nothing was changed."
        )
    # A job takes its number from this row, so none is queued between the check and the write.
    Organization.objects.select_for_update(no_key=True).get(pk=spec.organization_id)
    current = Spec.objects.select_for_update().get(pk=spec.pk)
    if current.archived_at is not None:
        return current
    _require_idle(current)
    if may_have_resources(current):
        raise Conflict(
            f"{current.name} still has resources. Destroy them first, then delete it. Nothing was changed.",
            remedy="destroy",
        )
    before = current.slug
    current.archived_at = timezone.now()
    current.slug = f"{current.slug[:40]}-archived-{current.pk.hex[-8:]}"
    current.auto_apply, current.expires_at = False, None
    current.save(update_fields=["archived_at", "slug", "auto_apply", "expires_at"])
    _record(current, archived_by, AuditAction.SPEC_ARCHIVED, slug=before)
    return current


@transaction.atomic
def unarchive_spec(*, spec: Spec, unarchived_by: User) -> Spec:
    """Restore a Spec, under its old name where that is still free."""
    current = Spec.objects.select_for_update().get(pk=spec.pk)
    if current.archived_at is None:
        return current
    former = current.slug.removesuffix(f"-archived-{current.pk.hex[-8:]}")
    is_taken = Spec.objects.filter(organization_id=current.organization_id, slug=former).exists()
    current.slug = current.slug if is_taken else former
    current.archived_at = None
    current.save(update_fields=["archived_at", "slug"])
    _record(current, unarchived_by, AuditAction.SPEC_UNARCHIVED, slug=current.slug)
    return current


def _require_idle(spec: Spec) -> None:
    active = Job.objects.filter(spec=spec, status__in=ACTIVE_STATUSES).first()
    if active is not None:
        raise JobActive(
            f"{spec.name} is held by {active}, which is {active.status}. Wait for it, or cancel it."
        )


def _record(spec: Spec, actor: User, action: AuditAction, **data: str) -> None:
    record(organization=spec.organization, actor=actor, action=action, target=spec, name=spec.name, **data)
    publish_on_commit(topics.organization(spec.organization_id, "specs"))
    publish_on_commit(topics.organization(spec.organization_id, "jobs"))
