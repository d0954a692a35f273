import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import console.identities.models
import console.ids


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CloudIdentity",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=console.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("slug", models.SlugField(max_length=60)),
                (
                    "provider",
                    models.CharField(
                        choices=[
                            ("aws", "AWS"),
                            ("gcp", "Google Cloud"),
                            ("azure", "Azure"),
                            ("ambient", "What the runner has"),
                        ],
                        max_length=10,
                    ),
                ),
                ("settings", models.JSONField(default=dict)),
                ("external_id", models.CharField(max_length=100, null=True, unique=True)),
                ("allowed_specs", models.JSONField(default=console.identities.models.anything)),
                ("allowed_environments", models.JSONField(default=console.identities.models.anything)),
                ("allowed_pools", models.JSONField(default=console.identities.models.anything)),
                ("tested_at", models.DateTimeField(blank=True, null=True)),
                ("test_passed", models.BooleanField(blank=True, null=True)),
                ("last_test", models.JSONField(blank=True, default=dict)),
                ("fetched_at", models.DateTimeField(blank=True, null=True)),
                ("last_fetch", models.JSONField(blank=True, default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="identities",
                        to="accounts.organization",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ResourceList",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=console.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("region", models.CharField(max_length=60)),
                ("kind", models.CharField(max_length=40)),
                ("shown_claim", models.UUIDField(null=True)),
                ("resource_count", models.PositiveIntegerField(default=0)),
                ("fetched_at", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True)),
                ("failed_at", models.DateTimeField(null=True)),
                ("looked_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "identity",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lists",
                        to="identities.cloudidentity",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ResourcePart",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=console.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("claim_id", models.UUIDField()),
                ("number", models.PositiveIntegerField()),
                ("resources", models.JSONField()),
                (
                    "list",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="identities.resourcelist",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SignedToken",
            fields=[
                ("claim_id", models.UUIDField(primary_key=True, serialize=False)),
                ("count", models.PositiveIntegerField(default=1)),
                ("signed_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("session_ends_at", models.DateTimeField()),
                (
                    "identity",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="identities.cloudidentity",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SigningKey",
            fields=[
                ("kid", models.CharField(max_length=43, primary_key=True, serialize=False)),
                ("public_jwk", models.JSONField()),
                ("sealed_private_key", models.BinaryField()),
                (
                    "status",
                    models.CharField(
                        choices=[("next", "Next"), ("current", "Current"), ("retired", "Retired")],
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("current_since", models.DateTimeField(null=True)),
                ("retired_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("status__in", ["next", "current"])),
                        fields=("status",),
                        name="signing_key_one_next_one_current",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["next", "current", "retired"])),
                        name="signing_key_status_known",
                    ),
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="cloudidentity",
            constraint=models.UniqueConstraint(fields=("organization", "slug"), name="identity_slug_once"),
        ),
        migrations.AddConstraint(
            model_name="cloudidentity",
            constraint=models.CheckConstraint(
                condition=models.Q(("provider__in", ["aws", "gcp", "azure", "ambient"])),
                name="identity_provider_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="cloudidentity",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("external_id__isnull", False), ("provider", "aws")),
                    models.Q(models.Q(("provider", "aws"), _negated=True), ("external_id__isnull", True)),
                    _connector="OR",
                ),
                name="identity_external_id_for_aws",
            ),
        ),
        migrations.AddConstraint(
            model_name="resourcelist",
            constraint=models.UniqueConstraint(
                fields=("identity", "region", "kind"), name="resource_list_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="resourcepart",
            constraint=models.UniqueConstraint(
                fields=("list", "claim_id", "number"), name="resource_part_once"
            ),
        ),
    ]
