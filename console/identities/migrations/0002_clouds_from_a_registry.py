from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("identities", "0001_initial")]

    operations = [
        migrations.AlterField(
            model_name="cloudidentity",
            name="provider",
            field=models.CharField(
                choices=[
                    ("aws", "AWS"),
                    ("gcp", "Google Cloud"),
                    ("azure", "Azure"),
                    ("ambient", "Runner credentials"),
                ],
                max_length=10,
            ),
        ),
        migrations.RemoveConstraint(model_name="cloudidentity", name="identity_external_id_for_aws"),
        migrations.AddConstraint(
            model_name="cloudidentity",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("external_id__isnull", False), ("provider__in", ["aws"])),
                    models.Q(
                        models.Q(("provider__in", ["aws"]), _negated=True), ("external_id__isnull", True)
                    ),
                    _connector="OR",
                ),
                name="identity_external_id_where_trusted",
            ),
        ),
    ]
