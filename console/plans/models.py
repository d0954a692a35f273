"""Plans: the reviewable result of a PLAN job, and the file that a DEPLOY applies."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q

from console.ids import new_id
from specs.snapshot import snapshot_hash

if TYPE_CHECKING:
    from console.plans.staleness import RememberedStaleness

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()

#: The actions by which a resource is lost.
DESTRUCTIVE = ("delete", "replace")


@dataclass(frozen=True, slots=True)
class Loss:
    """A resource that a plan destroys or replaces."""

    address: str
    type: str
    action: str
    deposed: bool


class Plan(models.Model):
    """The result of a PLAN job. Spent at most once, by one DEPLOY or DESTROY."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey("accounts.Organization", on_delete=models.PROTECT, related_name="plans")
    spec = models.ForeignKey("specs.Spec", on_delete=models.PROTECT, related_name="plans")
    job = models.OneToOneField("jobs.Job", on_delete=models.PROTECT, related_name="produced_plan")
    number = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)
    snapshot_hash = models.CharField(max_length=64)
    state_lineage = models.CharField(max_length=100)
    state_serial = models.PositiveBigIntegerField()
    terraform_version = models.CharField(max_length=40)
    provider_lock_sha256 = models.CharField(max_length=64)
    file_sha256 = models.CharField(max_length=64)
    # How many resources the state had: what the destroy guard takes its share of.
    resource_count = models.PositiveIntegerField(default=0)
    # Copied from the snapshot, so that lists need not load it. See `console/jobs/intent.py`.
    destroy = models.BooleanField(default=False)
    speculative = models.BooleanField(default=False)
    summary = models.JSONField()
    # What changes is in rows of its own (`PlanChange`): a page shows some of thousands.
    change_count = models.PositiveIntegerField(default=0)
    drift_count = models.PositiveIntegerField(default=0)
    output_changes = models.JSONField(default=list)
    spent_at = models.DateTimeField(null=True)
    spent_by = models.OneToOneField(
        "jobs.Job", null=True, on_delete=models.PROTECT, related_name="spent_plan"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["spec", "number"], name="plan_number_once"),
            models.CheckConstraint(
                condition=Q(spent_at__isnull=True, spent_by__isnull=True)
                | Q(spent_at__isnull=False, spent_by__isnull=False),
                name="plan_spent_by_somebody",
            ),
        ]
        indexes = [models.Index(fields=["spec", "-id"], name="plan_newest_of_spec")]

    #: Set for a page, which asks several times and shows one moment: see `staleness.remember_staleness`.
    remembered_staleness: "RememberedStaleness | None" = None

    @property
    def fingerprint(self) -> str:
        """Hash the plan's inputs and its file. Approvals are bound to this."""
        return snapshot_hash(
            {
                "snapshot_hash": self.snapshot_hash,
                "state_lineage": self.state_lineage,
                "state_serial": self.state_serial,
                "terraform_version": self.terraform_version,
                "provider_lock_sha256": self.provider_lock_sha256,
                "file_sha256": self.file_sha256,
            }
        )

    @cached_property
    def changes(self) -> list[dict[str, Any]]:
        """All of them, with their attributes. Thousands can be large: pages read the rows they show."""
        return list(self.rows.filter(drifted=False).order_by("position").values_list("body", flat=True))

    @cached_property
    def drift(self) -> list[dict[str, Any]]:
        """Changes made outside of Terraform since the last apply."""
        return list(self.rows.filter(drifted=True).order_by("position").values_list("body", flat=True))

    @cached_property
    def losses(self) -> list[Loss]:
        """Resources that the plan destroys or replaces. Approvals and confirmation depend on them."""
        rows = self.rows.filter(drifted=False, action__in=DESTRUCTIVE).order_by("position")
        fields = rows.values_list("address", "type", "action", "body__deposed")
        return [Loss(address, type, action, bool(deposed)) for address, type, action, deposed in fields]

    @property
    def has_providers(self) -> bool:
        """Tell whether the lock file names a provider; with built-in resources only it is empty."""
        return self.provider_lock_sha256 not in ("", EMPTY_SHA256)


class PlanChange(models.Model):
    """One resource of a plan: what happens to it, or what others did to it. In the order of review."""

    pk = models.CompositePrimaryKey("plan_id", "position")
    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="rows", db_index=False)
    position = models.PositiveIntegerField()
    drifted = models.BooleanField(default=False)
    action = models.CharField(max_length=10)
    module = models.TextField(default="")
    address = models.TextField()
    type = models.TextField()
    body = models.JSONField()


class PlanGraph(models.Model):
    """The picture of a plan's resources, made once, when somebody first looks at it."""

    plan = models.OneToOneField(Plan, primary_key=True, on_delete=models.CASCADE, related_name="graph")
    drawing = models.JSONField()


class Approval(models.Model):
    """One person's yes to one plan, bound to the plan's fingerprint."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="approvals")
    approved_by = models.ForeignKey("accounts.User", on_delete=models.PROTECT, related_name="+")
    fingerprint = models.CharField(max_length=64, default="")
    approved_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["plan", "approved_by"], name="approval_once_per_person")
        ]


class PlanFile(models.Model):
    """The sealed bytes of a plan, apart from the plan so that no list loads them."""

    plan = models.OneToOneField(Plan, primary_key=True, on_delete=models.CASCADE, related_name="files")
    sealed_file = models.BinaryField()
    sealed_json = models.BinaryField()
    provider_lock = models.TextField(default="")
