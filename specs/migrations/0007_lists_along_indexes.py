from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("specs", "0006_expiry_digest_keys_and_git_credentials")]

    operations = [
        migrations.AddIndex(
            model_name="spec",
            index=models.Index(
                condition=models.Q(("archived_at", None)),
                fields=["organization", "name", "id"],
                name="spec_by_name",
            ),
        ),
        migrations.AddIndex(
            model_name="spec",
            index=models.Index(
                condition=models.Q(("archived_at", None)),
                fields=["organization", "environment"],
                name="spec_environments",
            ),
        ),
    ]
