from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("specs", "0003_read_configurations_and_own_blueprints"),
    ]

    operations = [
        migrations.AddField(
            model_name="spec",
            name="archived_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
