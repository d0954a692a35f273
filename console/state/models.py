"""Terraform's state: every version that was ever written, who holds the lock, and where else it is kept."""

from django.db import models
from django.db.models import Q

from console.ids import new_id


class Origin(models.TextChoices):
    """The origin of a version."""

    ATTEMPT = "attempt", "written by a job"
    PERSON = "person", "written by a person's Terraform"
    UPLOAD = "upload", "uploaded"
    ROLL_BACK = "roll_back", "rolled back"


class StateVersion(models.Model):
    """One write of one spec's state: compressed, sealed, never overwritten."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    spec = models.ForeignKey("specs.Spec", on_delete=models.PROTECT, related_name="state_versions")
    serial = models.PositiveBigIntegerField()
    lineage = models.CharField(max_length=100)
    terraform_version = models.CharField(max_length=40, default="")
    resource_count = models.PositiveIntegerField(default=0)
    size_bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    # gzip, then sealed: what is stored can be answered as it is to whoever accepts gzip.
    sealed_body = models.BinaryField()
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.ATTEMPT)
    job = models.ForeignKey("jobs.Job", null=True, on_delete=models.PROTECT, related_name="state_versions")
    claim_id = models.UUIDField(null=True)
    author = models.ForeignKey("accounts.User", null=True, on_delete=models.PROTECT, related_name="+")
    restored_serial = models.PositiveBigIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            # Concurrent writers cannot both win: a serial is written once.
            models.UniqueConstraint(fields=["spec", "serial"], name="state_serial_once"),
            models.CheckConstraint(condition=Q(origin__in=Origin.values), name="state_origin_known"),
            # State is always written by somebody who can be named.
            models.CheckConstraint(
                condition=Q(job__isnull=False) | Q(author__isnull=False), name="state_written_by_somebody"
            ),
        ]


class StateLock(models.Model):
    """The lock on one spec's state, with Terraform's own lock document."""

    spec = models.OneToOneField(
        "specs.Spec", primary_key=True, on_delete=models.CASCADE, related_name="state_lock"
    )
    lock_id = models.CharField(max_length=100)
    info = models.JSONField()
    # The holder: an attempt (its claim and job), or a person.
    claim_id = models.UUIDField(null=True)
    job = models.ForeignKey("jobs.Job", null=True, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey("accounts.User", null=True, on_delete=models.CASCADE, related_name="+")
    locked_at = models.DateTimeField(auto_now_add=True)


class BackendKind(models.TextChoices):
    CONSOLE = "console", "This console"
    S3 = "s3", "Amazon S3"
    GCS = "gcs", "Google Cloud Storage"
    AZURERM = "azurerm", "Azure Blob Storage"
    PG = "pg", "PostgreSQL"


class Backend(models.Model):
    """A state backend: the choice of an organization for its Specs, or of one Spec.

    The settings are written into a file on the runner and may be seen; the environment holds what opens
    the backend, is sealed, and reaches Terraform by environment only.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        "accounts.Organization", on_delete=models.PROTECT, related_name="state_backends"
    )
    spec = models.OneToOneField(
        "specs.Spec", null=True, on_delete=models.CASCADE, related_name="state_backend"
    )
    kind = models.CharField(max_length=10, choices=BackendKind.choices)
    settings = models.JSONField(default=dict)
    sealed_environment = models.BinaryField(null=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization"], condition=Q(spec__isnull=True), name="backend_once_per_organization"
            ),
            models.CheckConstraint(condition=Q(kind__in=BackendKind.values), name="backend_kind_known"),
        ]
