import django.db.models.deletion
from django.db import migrations, models

import console.ids
import specs.models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("runners", "0001_initial"),
        ("specs", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Component",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=console.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("kind", models.SlugField(max_length=40)),
                ("output", models.CharField(max_length=200)),
                ("value", models.JSONField(null=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("gone_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="SealedValue",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=console.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("digest", models.CharField(max_length=64)),
                ("sealed", models.BinaryField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="VariableSet",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=console.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("description", models.TextField(blank=True)),
                ("priority", models.SmallIntegerField(default=0)),
                ("for_all_specs", models.BooleanField(default=False)),
                ("variables", models.JSONField(default=dict)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="output",
            name="output_sensitive_is_not_kept",
        ),
        migrations.RemoveConstraint(
            model_name="spec",
            name="spec_source_kind_known",
        ),
        migrations.AddField(
            model_name="output",
            name="gone_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="output",
            name="sealed_value",
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name="spec",
            name="auto_apply",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="spec",
            name="destroy_guard",
            field=models.JSONField(blank=True, default=specs.models.default_destroy_guard),
        ),
        migrations.AddField(
            model_name="spec",
            name="expires_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="spec",
            name="labels",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="spec",
            name="plan_max_age_hours",
            field=models.PositiveIntegerField(default=24),
        ),
        migrations.AddField(
            model_name="spec",
            name="protected",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="spec",
            name="region",
            field=models.CharField(blank=True, max_length=60),
        ),
        migrations.AddField(
            model_name="spec",
            name="required_approvals",
            field=models.PositiveSmallIntegerField(default=1),
        ),
        migrations.AddField(
            model_name="spec",
            name="terraform_version",
            field=models.CharField(blank=True, max_length=60),
        ),
        migrations.AlterField(
            model_name="spec",
            name="source_kind",
            field=models.CharField(
                choices=[("blueprint", "Blueprint"), ("inline", "Inline"), ("git", "Git")], max_length=20
            ),
        ),
        migrations.AddConstraint(
            model_name="output",
            constraint=models.CheckConstraint(
                condition=models.Q(("sensitive", False), ("value__isnull", True), _connector="OR"),
                name="output_sensitive_is_not_plain",
            ),
        ),
        migrations.AddConstraint(
            model_name="spec",
            constraint=models.CheckConstraint(
                condition=models.Q(("source_kind__in", ["blueprint", "inline", "git"])),
                name="spec_source_kind_known",
            ),
        ),
        migrations.AddField(
            model_name="component",
            name="spec",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="components", to="specs.spec"
            ),
        ),
        migrations.AddField(
            model_name="sealedvalue",
            name="organization",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="accounts.organization"
            ),
        ),
        migrations.AddField(
            model_name="variableset",
            name="organization",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="variable_sets",
                to="accounts.organization",
            ),
        ),
        migrations.AddField(
            model_name="variableset",
            name="specs",
            field=models.ManyToManyField(blank=True, related_name="variable_sets", to="specs.spec"),
        ),
        migrations.AddConstraint(
            model_name="component",
            constraint=models.UniqueConstraint(fields=("spec", "kind"), name="component_kind_once"),
        ),
        migrations.AddConstraint(
            model_name="sealedvalue",
            constraint=models.UniqueConstraint(fields=("organization", "digest"), name="sealed_value_once"),
        ),
        migrations.AddConstraint(
            model_name="variableset",
            constraint=models.UniqueConstraint(
                fields=("organization", "name"), name="variable_set_name_once"
            ),
        ),
    ]
