from django.db import migrations, models


class Migration(migrations.Migration):
    """Which revision a job was made from. Of older jobs only the hash of the configuration is known."""

    dependencies = [("jobs", "0007_lean_rows")]

    operations = [migrations.AddField("job", "revision", models.IntegerField(null=True))]
