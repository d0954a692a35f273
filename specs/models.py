"""Specs, their immutable revisions, and the outputs of the last deploy."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from console.ids import new_id
from specs.snapshot import snapshot_hash


class SourceKind(models.TextChoices):
    BLUEPRINT = "blueprint"
    INLINE = "inline"
    GIT = "git"


def default_destroy_guard() -> dict[str, Any]:
    """Return the default: destroying more than 30 % of the resources needs a typed confirmation."""
    return {"share": 0.3, "types": []}


class Spec(models.Model):
    """One piece of infrastructure that people edit; jobs act on its newest revision."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey("accounts.Organization", on_delete=models.PROTECT, related_name="specs")
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=60)
    environment = models.SlugField(max_length=40, default="development")
    description = models.TextField(blank=True)
    source_kind = models.CharField(max_length=20, choices=SourceKind.choices)
    blueprint = models.SlugField(max_length=60, blank=True)
    pool = models.ForeignKey("runners.Pool", on_delete=models.PROTECT, related_name="specs")
    labels = models.JSONField(default=dict, blank=True)
    region = models.CharField(max_length=60, blank=True)
    # The account that its jobs act in. None: the runner's own credentials, or the Spec's variables.
    identity = models.ForeignKey(
        "identities.CloudIdentity", null=True, blank=True, on_delete=models.PROTECT, related_name="specs"
    )
    terraform_version = models.CharField(max_length=60, blank=True)
    auto_apply = models.BooleanField(default=False)
    protected = models.BooleanField(default=False)
    required_approvals = models.PositiveSmallIntegerField(default=1)
    plan_max_age_hours = models.PositiveIntegerField(default=24)
    destroy_guard = models.JSONField(default=default_destroy_guard, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    # The expiry that the janitor has acted on. Another expiry differs from it, and is acted on again.
    expiry_acted_for = models.DateTimeField(null=True, blank=True, editable=False)
    # What must have happened before infrastructure may change: see `console/jobs/gates.py`.
    gates = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    deployed_at = models.DateTimeField(null=True, blank=True)
    destroyed_at = models.DateTimeField(null=True, blank=True)
    # Archived by a person: no longer listed or operated, while its jobs and audit trail stay readable.
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "slug"], name="spec_slug_once"),
            models.CheckConstraint(
                condition=Q(source_kind__in=SourceKind.values), name="spec_source_kind_known"
            ),
        ]
        indexes = [
            # The janitor's search for expired Specs, every second.
            models.Index(fields=["expires_at"], condition=Q(expires_at__isnull=False), name="spec_expiry"),
            # The list by name, a page at a time, and the environments that it can be filtered by.
            models.Index(
                fields=["organization", "name", "id"], condition=Q(archived_at=None), name="spec_by_name"
            ),
            models.Index(
                fields=["organization", "environment"],
                condition=Q(archived_at=None),
                name="spec_environments",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()


class Revision(models.Model):
    """One immutable, numbered form of a spec: its files and variables, and the hash of both."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    spec = models.ForeignKey(Spec, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    author = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    message = models.CharField(max_length=200)
    document = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["spec", "number"], name="revision_number_once")]

    @property
    def document_sha256(self) -> str:
        return snapshot_hash(self.document)


class SealedValue(models.Model):
    """The value of a sensitive variable. Revisions and snapshots name it by its keyed digest only."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey("accounts.Organization", on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    sealed = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "digest"], name="sealed_value_once")]


class DigestKey(models.Model):
    """The key of an organization's digests of sensitive values.

    It never rotates, since plans name values by their digests. The encryption keys that seal it do.
    """

    organization = models.OneToOneField(
        "accounts.Organization", primary_key=True, on_delete=models.CASCADE, related_name="+"
    )
    sealed = models.BinaryField()


class VariableSet(models.Model):
    """Variables shared by many specs: by those it is attached to, or by all of the organization."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        "accounts.Organization", on_delete=models.CASCADE, related_name="variable_sets"
    )
    name = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    # Of two sets that have the same variable, the one with the higher priority wins.
    priority = models.SmallIntegerField(default=0)
    for_all_specs = models.BooleanField(default=False)
    specs = models.ManyToManyField(Spec, related_name="variable_sets", blank=True)
    variables = models.JSONField(default=dict)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "name"], name="variable_set_name_once")
        ]

    def __str__(self) -> str:
        return self.name


class ReadConfiguration(models.Model):
    """The variables that a source declares, by its digest: nothing is parsed or fetched twice."""

    digest = models.CharField(max_length=64, primary_key=True)
    variables = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)


class OwnBlueprint(models.Model):
    """A catalogue entry of one organization: a folder of a Git repository, read at a commit."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        "accounts.Organization", on_delete=models.CASCADE, related_name="blueprints"
    )
    name = models.SlugField(max_length=60)
    url = models.CharField(max_length=500)
    ref = models.CharField(max_length=200)
    path = models.CharField(max_length=200, blank=True)
    commit = models.CharField(max_length=40)
    # The digest of the sealed token of a private repository.
    credential = models.CharField(max_length=64, blank=True)
    # The content of `blueprint.yaml`, if there is one: title, description, variables, components.
    meta = models.JSONField(default=dict)
    files = models.JSONField(default=dict)
    added_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "name"], name="own_blueprint_once")]

    def __str__(self) -> str:
        return self.name


class Component(models.Model):
    """A part of the infrastructure that people look for: the cluster, the database, Argo CD, the DNS zone."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    spec = models.ForeignKey(Spec, on_delete=models.CASCADE, related_name="components")
    kind = models.SlugField(max_length=40)
    output = models.CharField(max_length=200)
    value = models.JSONField(null=True)
    updated_at = models.DateTimeField(auto_now=True)
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["spec", "kind"], name="component_kind_once")]


class Output(models.Model):
    """One value that the spec's last deploy reported. A sensitive one is sealed."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    spec = models.ForeignKey(Spec, on_delete=models.CASCADE, related_name="outputs")
    name = models.CharField(max_length=200)
    type = models.JSONField(null=True)
    value = models.JSONField(null=True)
    sensitive = models.BooleanField(default=False)
    sealed_value = models.BinaryField(null=True)
    gone_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["spec", "name"], name="output_name_once"),
            models.CheckConstraint(
                condition=Q(sensitive=False) | Q(value__isnull=True), name="output_sensitive_is_not_plain"
            ),
        ]
