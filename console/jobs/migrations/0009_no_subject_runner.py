from django.db import migrations


class Migration(migrations.Migration):
    """No job has ever been about a runner: nothing reads or writes the column."""

    dependencies = [("jobs", "0008_revision")]
    operations = [migrations.RemoveField(model_name="job", name="subject_runner")]
