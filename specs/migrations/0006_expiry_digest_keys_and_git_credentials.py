import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("specs", "0005_identity"),
    ]

    operations = [
        migrations.AddField(
            model_name="spec",
            name="expiry_acted_for",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddIndex(
            model_name="spec",
            index=models.Index(
                condition=models.Q(("expires_at__isnull", False)), fields=["expires_at"], name="spec_expiry"
            ),
        ),
        migrations.AddField(
            model_name="ownblueprint",
            name="credential",
            field=models.CharField(blank=True, default="", max_length=64),
            preserve_default=False,
        ),
        migrations.CreateModel(
            name="DigestKey",
            fields=[
                (
                    "organization",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="accounts.organization",
                    ),
                ),
                ("sealed", models.BinaryField()),
            ],
        ),
    ]
