from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runners", "0002_credential_overlap"),
    ]

    operations = [
        migrations.AddField(
            model_name="registrationtoken",
            name="contacted_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="registrationtoken",
            name="refusal",
            field=models.CharField(blank=True, max_length=300),
        ),
    ]
