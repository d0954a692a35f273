import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("identities", "0001_initial"),
        ("jobs", "0005_fewer_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="identity",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="jobs",
                to="identities.cloudidentity",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("identity__isnull", False)),
                fields=["identity", "-id"],
                name="job_newest_of_identity",
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("identity__isnull", False), ("status__in", ["QUEUED", "CLAIMED", "PROCESSING"])
                ),
                fields=("identity", "type"),
                name="job_one_active_per_identity_and_type",
            ),
        ),
    ]
