from django.db import migrations, models

import console.accounts.rights


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_sessions_guide_invitations_and_filters")]

    operations = [
        migrations.AlterField(
            model_name=model,
            name="role",
            field=models.CharField(choices=console.accounts.rights.role_choices, max_length=20),
        )
        for model in ("invitation", "membership")
    ]
