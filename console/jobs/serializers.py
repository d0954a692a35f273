"""Jobs, attempts and events as the API returns them."""

from typing import Any

from django.urls import reverse
from rest_framework import serializers

from console.audit.models import AuditEvent
from console.jobs.models import Attempt, ErroredState, Job
from console.jobs.types import RequestedOn, types_requested_on
from console.jobs.waiting import why_waiting
from runner.protocol import JobStatus, JobType

#: The types that `POST /api/jobs` takes; the others are requested on a plan or on an identity.
REQUESTABLE = [type.value for type in types_requested_on(RequestedOn.SPEC)]
NOT_REQUESTABLE = (
    "{input} is not requested on a Spec. A DEPLOY applies a plan: POST /api/plans/{{plan_id}}/deploy. "
    "A test or a scan is of an identity: POST /api/identities/{{identity_id}}/test or …/refresh."
)


class JobRequestSerializer(serializers.Serializer[Any]):
    """The body of `POST /api/jobs`."""

    spec = serializers.UUIDField(help_text="The Spec's id.")
    type = serializers.ChoiceField(choices=REQUESTABLE, error_messages={"invalid_choice": NOT_REQUESTABLE})
    confirmation = serializers.CharField(
        required=False, default="", help_text="DESTROY: the Spec's name, typed to confirm."
    )
    destroy = serializers.BooleanField(default=False, help_text="PLAN: of a destroy, for review.")
    revision = serializers.IntegerField(
        required=False,
        min_value=1,
        help_text="PLAN: a speculative plan of this revision; it cannot be applied.",
    )


class JobListQuerySerializer(serializers.Serializer[Any]):
    page = serializers.IntegerField(min_value=1, max_value=10_000, default=1)
    limit = serializers.IntegerField(min_value=1, max_value=100, default=20)
    type = serializers.ChoiceField(choices=[type.value for type in JobType], required=False)
    status = serializers.ChoiceField(choices=[status.value for status in JobStatus], required=False)
    spec = serializers.UUIDField(required=False)
    organization = serializers.SlugField(required=False)


def _person() -> Any:
    """A person's username; null where Slipway itself acted."""
    return serializers.SlugRelatedField("username", read_only=True, allow_null=True)


class JobSerializer(serializers.ModelSerializer[Job]):
    organization = serializers.SlugRelatedField("slug", read_only=True)  # type: ignore[var-annotated]
    spec = serializers.PrimaryKeyRelatedField(read_only=True, allow_null=True)  # type: ignore[var-annotated]
    identity = serializers.PrimaryKeyRelatedField(read_only=True, allow_null=True)  # type: ignore[var-annotated]
    pool = serializers.SlugRelatedField("name", read_only=True)  # type: ignore[var-annotated]
    cancel_reason = serializers.CharField(
        read_only=True, help_text="`person` or `timeout`; empty unless the job was asked to stop."
    )
    requested_by = _person()
    cancelled_by = _person()
    url = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields = (
            "id", "number", "url", "organization", "type", "status", "spec", "identity", "plan", "pool",
            "priority", "revision", "snapshot_hash", "requested_by", "retry_of", "cancelled_by",
            "cancel_requested_at", "cancel_reason", "max_retries", "retry_count", "timeout_seconds",
            "attempt_count", "error_code", "error_message", "created_at", "run_after", "claimed_at",
            "started_at", "finished_at",
        )  # fmt: skip

    def get_url(self, job: Job) -> str:
        return reverse("api-job", args=[job.pk])


class JobDetailSerializer(JobSerializer):
    """One job, with its result and the reason why it waits."""

    waiting = serializers.SerializerMethodField()

    class Meta(JobSerializer.Meta):
        fields = (*JobSerializer.Meta.fields, "result", "waiting")  # type: ignore[assignment]

    def get_waiting(self, job: Job) -> dict[str, str] | None:
        waiting = why_waiting(job)
        return {"reason": waiting.reason, "remedy": waiting.remedy} if waiting else None


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    runner = serializers.SlugRelatedField("name", read_only=True)  # type: ignore[var-annotated]

    class Meta:
        model = Attempt
        fields = (
            "claim_id", "number", "runner", "claimed_at", "started_at", "ended_at", "outcome", "orphaned",
            "exit_reason", "first_log_seq", "log_next_seq",
        )  # fmt: skip


class ErroredStateSerializer(serializers.ModelSerializer[ErroredState]):
    claim_id = serializers.UUIDField(source="pk", read_only=True)
    attempt = serializers.IntegerField(source="attempt.number", read_only=True)
    runner = serializers.CharField(source="attempt.runner.name", read_only=True)
    url = serializers.SerializerMethodField()

    class Meta:
        model = ErroredState
        fields = ("claim_id", "attempt", "runner", "size_bytes", "sha256", "created_at", "url")

    def get_url(self, errored_state: ErroredState) -> str:
        return reverse("api-job-errored-state", args=[errored_state.attempt.job_id, errored_state.pk])


class EventSerializer(serializers.ModelSerializer[AuditEvent]):
    class Meta:
        model = AuditEvent
        fields = ("id", "at", "actor_kind", "actor_name", "action", "data")


class PaginationSerializer(serializers.Serializer[Any]):
    page = serializers.IntegerField()
    limit = serializers.IntegerField()
    total = serializers.IntegerField()
    total_is_exact = serializers.BooleanField(help_text="Counting stops at some thousands.")


class JobListSerializer(serializers.Serializer[Any]):
    """A page of jobs."""

    data = JobSerializer(many=True)  # type: ignore[assignment]
    pagination = PaginationSerializer()


class LogLineSerializer(serializers.Serializer[Any]):
    seq = serializers.IntegerField()
    at = serializers.CharField()
    level = serializers.CharField()
    message = serializers.CharField()
    data = serializers.DictField(allow_null=True)  # type: ignore[assignment]


class LogPageSerializer(serializers.Serializer[Any]):
    """A page of a job's log."""

    data = LogLineSerializer(many=True)  # type: ignore[assignment]
    last_seq = serializers.IntegerField(help_text="The number of the log's last line; 0 when it has none.")
    completeness = serializers.CharField(help_text="`complete`, or what is missing; empty while it runs.")


class PoolDepthSerializer(serializers.Serializer[Any]):
    organization = serializers.CharField()
    pool = serializers.CharField()
    queued = serializers.IntegerField(help_text="Jobs that a runner could start now.")
    delayed = serializers.IntegerField(help_text="Jobs that wait for their next retry.")
    running = serializers.IntegerField()
    oldest_wait_seconds = serializers.FloatField()
    runners_online = serializers.IntegerField()
