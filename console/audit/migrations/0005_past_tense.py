"""Rename the actions that were not in the past tense.

The trigger rests only for the UPDATE, in the transaction of the migration; writers wait until it commits.
The cancel of a running job is told from that of a queued one by the claim in its data, so that going back
restores each row as it was.
"""

from django.db import migrations

RENAMED = {
    "job.claim": "job.claimed",
    "job.start": "job.started",
    "job.succeed": "job.succeeded",
    "job.fail": "job.failed",
    "job.cancel": "job.cancelled",
    "job.requeue": "job.requeued",
    "plan.applied_by_itself": "plan.auto_applied",
    "plan.not_applied_by_itself": "plan.auto_apply_blocked",
    "runner.offline": "runner.went_offline",
}


def rename(pairs: dict[str, str], condition: str) -> str:
    values = ", ".join(f"('{before}', '{after}')" for before, after in pairs.items())
    return f"""
        ALTER TABLE audit_auditevent DISABLE TRIGGER audit_append_only;
        UPDATE audit_auditevent AS event SET action = renamed.after
        FROM (VALUES {values}) AS renamed (before, after)
        WHERE event.action = renamed.before AND {condition};
        ALTER TABLE audit_auditevent ENABLE TRIGGER audit_append_only;
    """  # noqa: S608 - of constants


FORWARD = rename(RENAMED, "true")
BACKWARD = rename(
    {after: before for before, after in RENAMED.items()},
    "(event.action <> 'job.cancelled' OR jsonb_exists(event.data, 'claim_id'))",
)


class Migration(migrations.Migration):
    dependencies = [("audit", "0004_no_lookups")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
