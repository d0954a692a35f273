"""Retention of versions: the last ones, and everything that a plan or a deploy refers to, are kept."""

from django.conf import settings
from django.db import connection

from specs.models import Spec

#: An apply saves its state again and again; of what one job has written, the last version is its result.
#: A plan names the version it was made from by lineage and serial.
REMOVE = """
WITH old AS (
    SELECT id, serial, lineage, job_id FROM state_stateversion
    WHERE spec_id = %(spec)s ORDER BY serial DESC OFFSET %(kept)s
)
DELETE FROM state_stateversion AS version USING old
WHERE version.id = old.id
  AND NOT EXISTS (
      SELECT FROM plans_plan AS plan
      WHERE plan.spec_id = %(spec)s AND plan.state_serial = old.serial AND plan.state_lineage = old.lineage)
  AND (old.job_id IS NULL OR EXISTS (
      SELECT FROM state_stateversion AS later
      WHERE later.spec_id = %(spec)s AND later.job_id = old.job_id AND later.serial > old.serial))
"""


def remove_old_versions(*, spec: Spec) -> int:
    """Remove what nobody needs any more; called after each write, so a spec's history stays bounded."""
    with connection.cursor() as cursor:
        cursor.execute(REMOVE, {"spec": spec.pk, "kept": max(1, settings.SLIPWAY_STATE_VERSIONS_KEPT)})
        return int(cursor.rowcount)
