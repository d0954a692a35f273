"""The memory that all janitors share, whichever of them leads."""

from django.db import models
from django.db.models import Q


class Watch(models.Model):
    """The one row that says when a janitor last ran, and until when no lease may be taken back."""

    id = models.SmallIntegerField(primary_key=True, default=1, editable=False)
    looked_at = models.DateTimeField(null=True)
    patient_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="watch_is_one_row")]
