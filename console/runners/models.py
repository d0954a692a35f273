"""Runners, the pools that jobs are routed to, and how a runner proves who it is."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from console.ids import new_id

DEFAULT_POOL = "default"


class Pool(models.Model):
    """The group of runners that a job is routed to."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey("accounts.Organization", on_delete=models.CASCADE, related_name="pools")
    name = models.SlugField(max_length=60)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "name"], name="pool_name_once")]

    def __str__(self) -> str:
        return self.name


class RunnerStatus(models.TextChoices):
    ONLINE = "ONLINE"
    OFFLINE = "OFFLINE"


class Runner(models.Model):
    """One pulling process in somebody's account."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        "accounts.Organization", on_delete=models.CASCADE, related_name="runners"
    )
    name = models.CharField(max_length=100)
    pools = models.ManyToManyField(Pool, related_name="runners")
    status = models.CharField(max_length=10, choices=RunnerStatus.choices, default=RunnerStatus.OFFLINE)
    version = models.CharField(max_length=40, blank=True)
    terraform_version = models.CharField(max_length=60, blank=True)
    platform = models.CharField(max_length=100, blank=True)
    slots = models.PositiveSmallIntegerField(default=1)
    types = ArrayField(models.CharField(max_length=30), default=list)
    draining_since = models.DateTimeField(null=True, blank=True)
    last_contact_at = models.DateTimeField(null=True, blank=True)
    # Which start of the program this is, as it says itself; a goodbye is of one start.
    start_id = models.CharField(max_length=64, blank=True)
    # When it said goodbye. Empty for a runner that is there, and for one that was lost.
    stopped_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    #: Set by the list of runners.
    jobs_today: int

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "name"], name="runner_name_once"),
            models.CheckConstraint(condition=Q(status__in=RunnerStatus.values), name="runner_status_known"),
            models.CheckConstraint(
                condition=Q(stopped_at=None) | Q(status=RunnerStatus.OFFLINE),
                name="runner_stopped_is_offline",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class RunnerCredential(models.Model):
    """The credential of a runner, kept as a hash. Two may overlap while one replaces the other."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    runner = models.ForeignKey(Runner, on_delete=models.CASCADE, related_name="credentials")
    credential_sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # Set when a newer one has taken over; requests that are under way may still carry this one.
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)


class RegistrationToken(models.Model):
    """A one-use, short-lived token that a new runner exchanges for its own credential."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey("accounts.Organization", on_delete=models.CASCADE, related_name="+")
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="+")
    token_sha256 = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    # What the page that waits for the runner shows: that it has come, and what it was told if it was refused.
    contacted_at = models.DateTimeField(null=True, blank=True)
    refusal = models.CharField(max_length=300, blank=True)
    runner = models.ForeignKey(Runner, null=True, on_delete=models.SET_NULL, related_name="+")
