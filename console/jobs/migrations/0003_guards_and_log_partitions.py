"""What Django's models cannot say: final is final, a snapshot never changes, and logs are partitioned."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import migrations

from console.jobs.log.partitions import WEEKS_AHEAD, create_statement, week_of

FINAL_IS_FINAL = """
CREATE FUNCTION jobs_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job %: % cannot change any more', OLD.id, TG_ARGV[0] USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER job_final_is_final BEFORE UPDATE OF status ON jobs_job FOR EACH ROW
WHEN (OLD.status IN ('SUCCESS', 'FAILED', 'CANCELLED') AND NEW.status <> OLD.status)
EXECUTE FUNCTION jobs_refuse_change('a final status');

CREATE TRIGGER job_snapshot_is_immutable BEFORE UPDATE OF config_snapshot, snapshot_hash ON jobs_job FOR EACH ROW
WHEN (OLD.snapshot_hash <> NEW.snapshot_hash OR OLD.config_snapshot <> NEW.config_snapshot)
EXECUTE FUNCTION jobs_refuse_change('a snapshot');
"""

UNDO_FINAL_IS_FINAL = """
DROP TRIGGER job_final_is_final ON jobs_job;
DROP TRIGGER job_snapshot_is_immutable ON jobs_job;
DROP FUNCTION jobs_refuse_change;
"""

# Heartbeats and log offsets update these rows all the time: room in each page keeps the updates in
# place (no index is touched), and vacuum comes early.
NARROW_LEASES = """
ALTER TABLE jobs_jobclaim SET (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
ALTER TABLE jobs_job SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
"""

# The default partition takes what comes when no janitor has made a week's partition.
LOG_CHUNKS = """
CREATE TABLE jobs_logchunk (
    job_id uuid NOT NULL,
    first_seq bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    line_count integer NOT NULL,
    level_mask smallint NOT NULL,
    lines text NOT NULL,
    PRIMARY KEY (job_id, first_seq, created_at)
) PARTITION BY RANGE (created_at);
CREATE TABLE jobs_logchunk_default PARTITION OF jobs_logchunk DEFAULT;
"""


def create_partitions(apps: Any, schema_editor: Any) -> None:
    this_week = week_of(datetime.now(UTC).date())
    for offset in range(WEEKS_AHEAD + 1):
        schema_editor.execute(create_statement(this_week + timedelta(days=7) * offset))


class Migration(migrations.Migration):
    dependencies = [("jobs", "0002_initial")]

    operations = [
        migrations.RunSQL(FINAL_IS_FINAL, UNDO_FINAL_IS_FINAL),
        migrations.RunSQL(NARROW_LEASES, migrations.RunSQL.noop),
        migrations.RunSQL(LOG_CHUNKS, "DROP TABLE jobs_logchunk"),
        migrations.RunPython(create_partitions, migrations.RunPython.noop),
    ]
