"""Jobs, the claims that hold them, the attempts that were made, and their log chunks."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from console.ids import new_id
from console.jobs.lifecycle import ACTIVE_STATUSES
from console.jobs.types import JobKind, kind_of
from runner.protocol import EMPTY_CHAIN, FINAL_STATUSES, CancelReason, JobStatus, JobType

# Plain texts, in a fixed order: migrations record them.
TYPES = [type.value for type in JobType]
STATUSES = [status.value for status in JobStatus]
ACTIVE = [status.value for status in ACTIVE_STATUSES]
FINAL = sorted(status.value for status in FINAL_STATUSES)
CANCEL_REASONS = [reason.value for reason in CancelReason]


class Job(models.Model):
    """One PLAN, DEPLOY, DESTROY … of a snapshot. The row is the queue.

    Every status change writes every index and evaluates every check, so there are no more of them than
    a query relies on: a foreign key has an index only where a query uses it, and only over rows that have
    one; counters are maintained by the queue's own statements.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        "accounts.Organization", on_delete=models.PROTECT, related_name="jobs", db_index=False
    )
    number = models.BigIntegerField()
    type = models.CharField(max_length=20, choices=[(type, type) for type in TYPES])
    status = models.CharField(
        max_length=12, choices=[(status, status) for status in STATUSES], default=JobStatus.QUEUED.value
    )
    spec = models.ForeignKey(
        "specs.Spec", null=True, on_delete=models.PROTECT, related_name="jobs", db_index=False
    )
    # Of a CONNECTION_TEST or FETCH_RESOURCES, the cloud identity that it is about.
    identity = models.ForeignKey(
        "identities.CloudIdentity", null=True, on_delete=models.PROTECT, related_name="jobs", db_index=False
    )
    plan = models.ForeignKey(
        "plans.Plan", null=True, on_delete=models.PROTECT, related_name="deploys", db_index=False
    )
    pool = models.ForeignKey("runners.Pool", on_delete=models.PROTECT, related_name="jobs", db_index=False)
    priority = models.SmallIntegerField(default=0)
    # The number of the spec's revision that the snapshot was made from, for people: what counts is the hash.
    revision = models.IntegerField(null=True)
    config_snapshot = models.JSONField()
    snapshot_hash = models.CharField(max_length=64)
    requested_by = models.ForeignKey(
        "accounts.User", null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    retry_of = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, related_name="retries", db_index=False
    )
    idempotency_key = models.CharField(max_length=200, null=True)  # noqa: DJ001  NULL: no key, many may have none
    request_sha256 = models.CharField(max_length=64, default="")
    max_retries = models.SmallIntegerField()
    retry_count = models.SmallIntegerField(default=0)
    timeout_seconds = models.IntegerField()
    attempt_count = models.IntegerField(default=0)
    cancel_requested_at = models.DateTimeField(null=True)
    cancel_reason = models.CharField(
        max_length=10, choices=[(reason, reason) for reason in CANCEL_REASONS], default=""
    )
    cancelled_by = models.ForeignKey(
        "accounts.User", null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    result = models.JSONField(null=True)
    error_code = models.CharField(max_length=60, default="")
    error_message = models.TextField(default="")
    # While an attempt lives, its claim row counts on from here.
    log_next_seq = models.BigIntegerField(default=1)
    log_bytes = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    run_after = models.DateTimeField(db_default=Now())
    claimed_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    #: The runner of the last attempt; set by the list of jobs.
    runner_name: str

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "number"], name="job_number_once"),
            # The index decides, not a check in Python: two clicks can race.
            models.UniqueConstraint(
                fields=["spec"], condition=Q(status__in=ACTIVE), name="job_one_active_per_spec"
            ),
            models.UniqueConstraint(
                fields=["identity", "type"],
                condition=Q(identity__isnull=False, status__in=ACTIVE),
                name="job_one_active_per_identity_and_type",
            ),
            models.UniqueConstraint(
                fields=["organization", "idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
                name="job_idempotency_key_once",
            ),
            models.CheckConstraint(condition=Q(type__in=TYPES), name="job_type_known"),
            # Also says which statuses there are.
            models.CheckConstraint(
                condition=Q(status__in=FINAL, finished_at__isnull=False)
                | Q(status__in=ACTIVE, finished_at__isnull=True),
                name="job_finished_at_only_when_final",
            ),
        ]
        indexes = [
            # The claim: the head of each pool's queue, however many finished jobs there are.
            models.Index(
                "pool",
                models.F("priority").desc(),
                "id",
                condition=Q(status=JobStatus.QUEUED.value),
                name="job_claimable",
            ),
            # The jobs page, newest first.
            models.Index(fields=["organization", "-id"], name="job_newest_of_organization"),
            # The spec page, newest first.
            models.Index(fields=["spec", "-id"], name="job_newest_of_spec"),
            # The identity page, newest first.
            models.Index(
                fields=["identity", "-id"], condition=Q(identity__isnull=False), name="job_newest_of_identity"
            ),
            models.Index(fields=["plan"], condition=Q(plan__isnull=False), name="job_of_plan"),
            models.Index(fields=["retry_of"], condition=Q(retry_of__isnull=False), name="job_retries"),
        ]

    def __str__(self) -> str:
        return f"{self.type} #{self.number}"

    @property
    def is_final(self) -> bool:
        return self.status in FINAL_STATUSES

    @property
    def kind(self) -> JobKind:
        """The row of the job's type, for templates too: `job.kind.changes_infrastructure`."""
        return kind_of(self.type)

    @property
    def may_have_changed_a_part(self) -> bool:
        """Return whether an attempt may have stopped part-way through a change; a person has to check."""
        ended_early = self.status in (JobStatus.FAILED, JobStatus.CANCELLED)
        return self.kind.changes_infrastructure and self.claimed_at is not None and ended_early


class JobClaim(models.Model):
    """The lease of the attempt that holds the job now. Heartbeats and log offsets write only here.

    Only the claim's own statement makes one, of the job that it has locked and for the runner that asks, and
    neither is ever deleted: the database is not asked to look both up again at each claim.
    """

    job = models.OneToOneField(
        Job, primary_key=True, on_delete=models.CASCADE, related_name="claim", db_constraint=False
    )
    claim_id = models.UUIDField(unique=True)
    claim_key = models.UUIDField()
    runner = models.ForeignKey(
        "runners.Runner",
        on_delete=models.PROTECT,
        related_name="claims",
        db_index=False,
        db_constraint=False,
    )
    expires_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    log_next_seq = models.BigIntegerField()
    log_bytes = models.BigIntegerField(default=0, db_default=0)
    log_chain = models.CharField(max_length=64, default=EMPTY_CHAIN, db_default=EMPTY_CHAIN)
    log_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # A repeated claim request finds its claim; two at once cannot both make one.
            models.UniqueConstraint(fields=["runner", "claim_key"], name="claim_key_once_per_runner"),
        ]
        # No index on the lease's end: there are as many rows as jobs under way, and without one a
        # heartbeat rewrites its row in place.


class Outcome(models.TextChoices):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


class Attempt(models.Model):
    """One runner's try at a job. Its id is the claim id: the attempt is the fence.

    Made together with its claim, and by nothing else: see there about the foreign keys.
    """

    claim_id = models.UUIDField(primary_key=True)
    job = models.ForeignKey(
        Job, on_delete=models.CASCADE, related_name="attempts", db_index=False, db_constraint=False
    )
    number = models.IntegerField()
    runner = models.ForeignKey(
        "runners.Runner", on_delete=models.PROTECT, related_name="attempts", db_constraint=False
    )
    claimed_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=10, choices=Outcome.choices, db_default=Outcome.RUNNING)
    # Superseded: whatever it still sends is refused.
    orphaned = models.BooleanField(default=False, db_default=False)
    exit_reason = models.TextField(default="", db_default="")
    first_log_seq = models.BigIntegerField()
    log_next_seq = models.BigIntegerField(null=True)
    log_chain = models.CharField(max_length=64, default="", db_default="")
    reported_log_next_seq = models.BigIntegerField(null=True)
    reported_log_chain = models.CharField(max_length=64, default="", db_default="")
    # The final report as it came, so that its repeat is told from a different one.
    report_sha256 = models.CharField(max_length=64, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="attempt_number_once"),
        ]


class ErroredState(models.Model):
    """A state that an attempt's Terraform could not save, stored with its job for a person to push."""

    attempt = models.OneToOneField(
        Attempt, primary_key=True, on_delete=models.CASCADE, related_name="errored_state"
    )
    sealed_body = models.BinaryField()
    size_bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)


class LogChunk(models.Model):
    """One batch of log lines, as NDJSON. Partitioned by week, so that retention drops partitions.

    The fence on `job_claim` keeps `first_seq` unique within a job: a unique index over partitions
    would have to contain `created_at`, and would not say it.
    """

    pk = models.CompositePrimaryKey("job_id", "first_seq", "created_at")
    job = models.ForeignKey(Job, on_delete=models.DO_NOTHING, related_name="log_chunks", db_constraint=False)
    first_seq = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(db_default=Now())
    line_count = models.PositiveIntegerField()
    level_mask = models.PositiveSmallIntegerField()
    lines = models.TextField()

    class Meta:
        managed = False
        db_table = "jobs_logchunk"
