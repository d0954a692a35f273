"""A version, once written, stays as it is; only its seal may be renewed when keys are rotated."""

from django.db import migrations

NEVER_OVERWRITTEN = """
CREATE FUNCTION state_refuse_overwriting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (to_jsonb(NEW) - 'sealed_body') IS DISTINCT FROM (to_jsonb(OLD) - 'sealed_body') THEN
        RAISE EXCEPTION 'a state version is never overwritten' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER state_never_overwritten BEFORE UPDATE ON state_stateversion
FOR EACH ROW EXECUTE FUNCTION state_refuse_overwriting();
-- What is sealed cannot be compressed: PostgreSQL need not try.
ALTER TABLE state_stateversion ALTER COLUMN sealed_body SET STORAGE EXTERNAL;
"""


class Migration(migrations.Migration):
    dependencies = [("state", "0002_versions_locks_backends")]

    operations = [
        migrations.RunSQL(
            NEVER_OVERWRITTEN,
            "DROP TRIGGER state_never_overwritten ON state_stateversion;"
            "DROP FUNCTION state_refuse_overwriting;"
            "ALTER TABLE state_stateversion ALTER COLUMN sealed_body SET STORAGE EXTENDED;",
        ),
    ]
