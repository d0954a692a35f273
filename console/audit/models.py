"""The table of audit events. A trigger refuses updates and deletes."""

from django.db import models
from django.db.models.functions import Now

from console.ids import new_id


class ActorKind(models.TextChoices):
    PERSON = "person"
    RUNNER = "runner"
    SYSTEM = "system"


class AuditEvent(models.Model):
    """One thing that a person, a runner or the console itself did.

    Written at every step of every job, of an organization that the writer has just read and that nothing
    deletes: the database is not asked to look it up again.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        "accounts.Organization",
        on_delete=models.PROTECT,
        related_name="audit_events",
        db_index=False,
        db_constraint=False,
    )
    at = models.DateTimeField(db_default=Now())
    actor_kind = models.CharField(max_length=10, choices=ActorKind.choices)
    actor_id = models.UUIDField(null=True, blank=True)
    actor_name = models.CharField(max_length=150)
    action = models.CharField(max_length=60)
    target_kind = models.CharField(max_length=30)
    target_id = models.UUIDField()
    data = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))

    class Meta:
        indexes = [
            # The audit page: an organization's newest events.
            models.Index(fields=["organization", "-id"], name="audit_newest_of_organization"),
            # The trail of one job, spec or runner.
            models.Index(fields=["target_id", "id"], name="audit_trail_of_target"),
        ]
