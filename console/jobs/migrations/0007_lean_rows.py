from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

#: Counters, whose checks were evaluated at every move of a job.
COUNTERS = {
    ("attempt", "first_log_seq"): models.BigIntegerField(),
    ("attempt", "log_next_seq"): models.BigIntegerField(null=True),
    ("attempt", "number"): models.IntegerField(),
    ("attempt", "reported_log_next_seq"): models.BigIntegerField(null=True),
    ("job", "attempt_count"): models.IntegerField(default=0),
    ("job", "log_bytes"): models.BigIntegerField(default=0),
    ("job", "log_next_seq"): models.BigIntegerField(default=1),
    ("job", "max_retries"): models.SmallIntegerField(),
    ("job", "number"): models.BigIntegerField(),
    ("job", "retry_count"): models.SmallIntegerField(default=0),
    ("job", "timeout_seconds"): models.IntegerField(),
    ("jobclaim", "log_bytes"): models.BigIntegerField(db_default=0, default=0),
    ("jobclaim", "log_next_seq"): models.BigIntegerField(),
}


def alter_field(model_name: str, name: str, field: Any) -> migrations.AlterField:
    return migrations.AlterField(model_name=model_name, name=name, field=field)


def without_index(name: str, index: str, to: str, related_name: str) -> migrations.SeparateDatabaseAndState:
    """By name: Django would drop every index over the column, also the one that decides who is first."""
    return migrations.SeparateDatabaseAndState(
        database_operations=[migrations.RunSQL(f"DROP INDEX {index}", migrations.RunSQL.noop)],
        state_operations=[
            alter_field(
                "job",
                name,
                models.ForeignKey(
                    db_index=False,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name=related_name,
                    to=to,
                ),
            )
        ],
    )


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0006_identity"),
        ("plans", "0002_fingerprints_purposes_and_drift"),
        ("runners", "0002_credential_overlap"),
        ("specs", "0003_read_configurations_and_own_blueprints"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="job", name="job_idempotency_key_once"),
        migrations.RemoveConstraint(model_name="job", name="job_status_known"),
        *(alter_field(model, name, field) for (model, name), field in COUNTERS.items()),
        without_index("plan", "jobs_job_plan_id_08a8caa5", "plans.plan", "deploys"),
        without_index("retry_of", "jobs_job_retry_of_id_376fde47", "jobs.job", "retries"),
        without_index("spec", "jobs_job_spec_id_62d49c11", "specs.spec", "jobs"),
        alter_field(
            "attempt",
            "job",
            models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="attempts",
                to="jobs.job",
            ),
        ),
        alter_field(
            "attempt",
            "runner",
            models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="attempts",
                to="runners.runner",
            ),
        ),
        alter_field(
            "jobclaim",
            "job",
            models.OneToOneField(
                db_constraint=False,
                on_delete=django.db.models.deletion.CASCADE,
                primary_key=True,
                related_name="claim",
                serialize=False,
                to="jobs.job",
            ),
        ),
        alter_field(
            "jobclaim",
            "runner",
            models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="claims",
                to="runners.runner",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(condition=Q(("plan__isnull", False)), fields=["plan"], name="job_of_plan"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=Q(("retry_of__isnull", False)), fields=["retry_of"], name="job_retries"
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.UniqueConstraint(
                condition=Q(("idempotency_key__isnull", False)),
                fields=("organization", "idempotency_key"),
                name="job_idempotency_key_once",
            ),
        ),
    ]
