"""Cloud identities, the lists of what their accounts hold, and the keys that sign tokens for jobs."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from console.ids import new_id

#: In a list of what is allowed: everything of the organization's.
ANY = "*"


class Provider(models.TextChoices):
    AWS = "aws", "AWS"
    GCP = "gcp", "Google Cloud"
    AZURE = "azure", "Azure"
    AMBIENT = "ambient", "What the runner has"


def anything() -> list[str]:
    return [ANY]


class CloudIdentity(models.Model):
    """Which account a job acts in, and how a runner obtains temporary credentials for it. No key is kept."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        "accounts.Organization", on_delete=models.PROTECT, related_name="identities"
    )
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=60)
    provider = models.CharField(max_length=10, choices=Provider.choices)
    # What `provider_settings` has found to be good for the provider.
    settings = models.JSONField(default=dict)
    # Ours, never a person's: whoever could choose it could use another tenant's role (the confused deputy).
    external_id = models.CharField(max_length=100, null=True, unique=True)  # noqa: DJ001  NULL: has none
    # Who may use it: ids of Specs, names of environments, ids of pools; or "*" for all.
    allowed_specs = models.JSONField(default=anything)
    allowed_environments = models.JSONField(default=anything)
    allowed_pools = models.JSONField(default=anything)
    # The last CONNECTION_TEST of the settings as they are: its lines, who the cloud took it for, the session.
    tested_at = models.DateTimeField(null=True, blank=True)
    test_passed = models.BooleanField(null=True, blank=True)
    last_test = models.JSONField(default=dict, blank=True)
    fetched_at = models.DateTimeField(null=True, blank=True)
    last_fetch = models.JSONField(default=dict, blank=True)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "slug"], name="identity_slug_once"),
            models.CheckConstraint(condition=Q(provider__in=Provider.values), name="identity_provider_known"),
            # An AWS role is assumed with an external id of ours, and nothing else has one.
            models.CheckConstraint(
                condition=Q(provider=Provider.AWS, external_id__isnull=False)
                | (~Q(provider=Provider.AWS) & Q(external_id__isnull=True)),
                name="identity_external_id_for_aws",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def account(self) -> str:
        """The account, project or subscription that it leads to; empty where only the runner knows."""
        known: dict[str, Any] = self.settings
        match self.provider:
            case Provider.AWS:
                return str(known["role_arn"]).split(":")[4]
            case Provider.GCP:
                return str(known["project"])
            case Provider.AZURE:
                return str(known["subscription_id"])
        return ""


class ResourceList(models.Model):
    """What one fetch found of one kind in one region, and how the latest look ended."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    identity = models.ForeignKey(CloudIdentity, on_delete=models.CASCADE, related_name="lists")
    region = models.CharField(max_length=60)
    kind = models.CharField(max_length=40)
    # The attempt whose parts are shown. Those of another one wait until its last has come.
    shown_claim = models.UUIDField(null=True)
    resource_count = models.PositiveIntegerField(default=0)
    fetched_at = models.DateTimeField(null=True)
    # Why the latest look is not complete. What was found before stays beside it.
    error = models.TextField(blank=True)
    failed_at = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["identity", "region", "kind"], name="resource_list_once"),
        ]


class ResourcePart(models.Model):
    """One part of a list as the runner sent it: a large account comes in several."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    list = models.ForeignKey(ResourceList, on_delete=models.CASCADE, related_name="parts", db_index=False)
    claim_id = models.UUIDField()
    number = models.PositiveIntegerField()
    resources = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["list", "claim_id", "number"], name="resource_part_once"),
        ]


class KeyStatus(models.TextChoices):
    """The life of a signing key. All of them are published; one signs."""

    NEXT = "next"  # clouds learn it before the first token comes that needs it
    CURRENT = "current"
    RETIRED = "retired"  # tokens that it signed are still under way


class SigningKey(models.Model):
    """One key of the issuer. Its id is the RFC 7638 thumbprint; the private part is sealed."""

    kid = models.CharField(max_length=43, primary_key=True)
    public_jwk = models.JSONField()
    sealed_private_key = models.BinaryField()
    status = models.CharField(max_length=10, choices=KeyStatus.choices)
    created_at = models.DateTimeField(db_default=Now())
    current_since = models.DateTimeField(null=True)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["status"],
                condition=Q(status__in=[KeyStatus.NEXT, KeyStatus.CURRENT]),
                name="signing_key_one_next_one_current",
            ),
            models.CheckConstraint(condition=Q(status__in=KeyStatus.values), name="signing_key_status_known"),
        ]


class SignedToken(models.Model):
    """That an attempt was given tokens, how often, and until when what it got for them is good. Never one."""

    claim_id = models.UUIDField(primary_key=True)
    identity = models.ForeignKey(CloudIdentity, on_delete=models.CASCADE, related_name="+")
    count = models.PositiveIntegerField(default=1)
    signed_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    session_ends_at = models.DateTimeField()
