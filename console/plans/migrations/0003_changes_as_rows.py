import django.db.models.deletion
from django.db import migrations, models

#: The order of review, as console/plans/changes.py has it.
MOVE_TO_ROWS = """
INSERT INTO plans_planchange (plan_id, position, drifted, action, module, address, type, body)
SELECT plan_id,
       row_number() OVER (
           PARTITION BY plan_id
           ORDER BY drifted,
                    array_position(
                        ARRAY['delete','replace','forget','update','create','import','move','read'],
                        body->>'action'),
                    coalesce(body->>'module', ''), body->>'address'),
       drifted, body->>'action', coalesce(body->>'module', ''), body->>'address', body->>'type', body
FROM (
    SELECT plan.id AS plan_id, false AS drifted, body
    FROM plans_plan AS plan, jsonb_array_elements(plan.changes) AS body
    UNION ALL
    SELECT plan.id, true, body FROM plans_plan AS plan, jsonb_array_elements(plan.drift) AS body
) AS every;
UPDATE plans_plan SET change_count = jsonb_array_length(changes), drift_count = jsonb_array_length(drift);
-- The columns can be dropped only when no check of a constraint is outstanding.
SET CONSTRAINTS ALL IMMEDIATE;
"""

MOVE_BACK = """
UPDATE plans_plan AS plan SET
    changes = coalesce((SELECT jsonb_agg(body ORDER BY position) FROM plans_planchange
                        WHERE plan_id = plan.id AND NOT drifted), '[]'),
    drift = coalesce((SELECT jsonb_agg(body ORDER BY position) FROM plans_planchange
                      WHERE plan_id = plan.id AND drifted), '[]');
SET CONSTRAINTS ALL IMMEDIATE;
"""


class Migration(migrations.Migration):
    dependencies = [("plans", "0002_fingerprints_purposes_and_drift")]

    operations = [
        migrations.CreateModel(
            name="PlanGraph",
            fields=[
                (
                    "plan",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="graph",
                        serialize=False,
                        to="plans.plan",
                    ),
                ),
                ("drawing", models.JSONField()),
            ],
        ),
        migrations.CreateModel(
            name="PlanChange",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "plan_id",
                        "position",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("drifted", models.BooleanField(default=False)),
                ("action", models.CharField(max_length=10)),
                ("module", models.TextField(default="")),
                ("address", models.TextField()),
                ("type", models.TextField()),
                ("body", models.JSONField()),
                (
                    "plan",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rows",
                        to="plans.plan",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="plan", name="change_count", field=models.PositiveIntegerField(default=0)
        ),
        migrations.AddField(
            model_name="plan", name="drift_count", field=models.PositiveIntegerField(default=0)
        ),
        # A default, so that going back finds a value for every row before it fills them.
        migrations.AlterField(model_name="plan", name="changes", field=models.JSONField(default=list)),
        migrations.RunSQL(MOVE_TO_ROWS, MOVE_BACK),
        migrations.RemoveField(model_name="plan", name="changes"),
        migrations.RemoveField(model_name="plan", name="drift"),
    ]
