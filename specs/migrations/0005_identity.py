import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("identities", "0001_initial"),
        ("specs", "0004_archived_specs"),
    ]

    operations = [
        migrations.AddField(
            model_name="spec",
            name="identity",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="specs",
                to="identities.cloudidentity",
            ),
        ),
    ]
