import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial"), ("audit", "0003_fewer_indexes")]

    operations = [
        migrations.AlterField(
            model_name="auditevent",
            name="organization",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="audit_events",
                to="accounts.organization",
            ),
        ),
    ]
