"""The heartbeat of each console process."""

from django.db import models
from django.db.models.functions import Now

from console.ids import new_id


class ConsoleBeat(models.Model):
    """One console process that serves requests. While there is none, no runner can renew its lease."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    beat_at = models.DateTimeField(db_default=Now())
