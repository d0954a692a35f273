"""Cloud identities, the lists of what their accounts hold, and the keys that sign tokens for jobs."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from console.identities.clouds import CLOUDS, Cloud, cloud_choices
from console.ids import new_id

#: In a list of allowed names: everything that the organization has.
ANY = "*"
#: A test measures what is left of a session, some moments after it began.
ELAPSED_SECONDS = 60


def anything() -> list[str]:
    return [ANY]


def provider_constraints() -> list[models.CheckConstraint]:
    """Return what the database requires of an identity's cloud, from the registry."""
    with_external_id = [key for key, cloud in CLOUDS.items() if cloud.has_external_id]
    return [
        models.CheckConstraint(condition=Q(provider__in=list(CLOUDS)), name="identity_provider_known"),
        # An external id of ours is a condition of trust in these clouds, and the others have none.
        models.CheckConstraint(
            condition=Q(provider__in=with_external_id, external_id__isnull=False)
            | (~Q(provider__in=with_external_id) & Q(external_id__isnull=True)),
            name="identity_external_id_where_trusted",
        ),
    ]


class CloudIdentity(models.Model):
    """The account that a job acts in, and how its temporary credentials are obtained. No key is stored."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        "accounts.Organization", on_delete=models.PROTECT, related_name="identities"
    )
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=60)
    provider = models.CharField(max_length=10, choices=cloud_choices())
    # As the cloud's `check_settings` returns them.
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
            *provider_constraints(),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def cloud(self) -> Cloud:
        return CLOUDS[self.provider]

    @property
    def account(self) -> str:
        """Return the account, project or subscription that it leads to; empty where only the runner knows."""
        return self.cloud.account(self.settings)

    @property
    def audience(self) -> str:
        """Return the audience of its tokens; empty where credentials are obtained without one."""
        return self.cloud.audience(self.settings)

    @property
    def is_assumed_by_runner(self) -> bool:
        return self.cloud.is_assumed_by_runner(self.settings)

    @property
    def session_seconds(self) -> int:
        """Return the length of session that is asked for; less, when the last test obtained less."""
        requested = self.cloud.session_seconds(self.settings)
        measured = self.last_test.get("session_seconds")
        if isinstance(measured, int) and 0 < measured < requested - ELAPSED_SECONDS:
            return measured
        return requested


class ResourceList(models.Model):
    """The resources of one kind in one region, and how the latest scan ended."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    identity = models.ForeignKey(CloudIdentity, on_delete=models.CASCADE, related_name="lists")
    region = models.CharField(max_length=60)
    kind = models.CharField(max_length=40)
    # The attempt whose parts are shown. Those of another one wait until its last has come.
    shown_claim = models.UUIDField(null=True)
    resource_count = models.PositiveIntegerField(default=0)
    fetched_at = models.DateTimeField(null=True)
    # Why the latest scan is not complete. Resources of the scan before stay beside it.
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
    """The number of tokens that an attempt was given, and when the session ends. Never a token."""

    claim_id = models.UUIDField(primary_key=True)
    identity = models.ForeignKey(CloudIdentity, on_delete=models.CASCADE, related_name="+")
    count = models.PositiveIntegerField(default=1)
    signed_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    session_ends_at = models.DateTimeField()
