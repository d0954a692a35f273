"""The jobs API for people and programs, over the same services as the pages."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import orjson
from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.accounts.access import memberships_of, organization_to_view
from console.accounts.authentication import person
from console.audit.models import AuditEvent
from console.errors import BadInput
from console.jobs import access, selectors, services
from console.jobs.errored_states import errored_states_of, open_errored_state
from console.jobs.log import selectors as log_selectors
from console.jobs.log.selectors import LEVEL_BITS
from console.jobs.log.stream import plain_text, stream_log
from console.jobs.models import Job
from console.jobs.queue_depth import pool_depths
from console.jobs.serializers import (
    AttemptSerializer,
    ErroredStateSerializer,
    EventSerializer,
    JobDetailSerializer,
    JobListQuerySerializer,
    JobListSerializer,
    JobRequestSerializer,
    JobSerializer,
    LogPageSerializer,
    PoolDepthSerializer,
)
from console.parsers import validate_body
from runner.protocol import JobType
from specs.access import spec_to_apply_by_id, spec_to_plan_by_id

#: Counting stops here: nobody turns ten thousand pages, and counting a million rows is slow.
COUNT_LIMIT = 10_000


class JobsView(APIView):
    @extend_schema(operation_id="jobs_list", parameters=[JobListQuerySerializer], responses=JobListSerializer)
    def get(self, request: Request) -> Response:
        """List the jobs that the caller may see, newest first."""
        query = validate_body(JobListQuerySerializer(data=request.query_params))
        page, limit = query.pop("page"), query.pop("limit")
        jobs = _visible(request, query)
        start = (page - 1) * limit
        newest = jobs.select_related("organization", "pool", "requested_by", "cancelled_by").order_by("-id")
        rows = newest.defer("config_snapshot", "result")[start : start + limit]
        total = jobs.order_by()[: COUNT_LIMIT + 1].count()
        return Response(
            {
                "data": JobSerializer(rows, many=True).data,
                "pagination": {
                    "page": page,
                    "limit": limit,
                    "total": min(total, COUNT_LIMIT),
                    "total_is_exact": total <= COUNT_LIMIT,
                },
            }
        )

    @extend_schema(request=JobRequestSerializer, responses={202: JobDetailSerializer})
    def post(self, request: Request) -> Response:
        """Queue a PLAN or a DESTROY. `Idempotency-Key` makes a repeat return the first job."""
        body = validate_body(JobRequestSerializer(data=request.data))
        door = spec_to_plan_by_id if body["type"] == JobType.PLAN else spec_to_apply_by_id
        spec = door(request.user, body["spec"])
        key = idempotency_key(request)
        match body["type"]:
            case JobType.PLAN:
                job = services.request_plan(
                    spec=spec,
                    requested_by=person(request),
                    destroy=body["destroy"],
                    revision=body.get("revision"),
                    idempotency_key=key,
                )
            case _:  # the serializer takes no third
                job = services.request_destroy(
                    spec=spec,
                    confirmation=body["confirmation"],
                    requested_by=person(request),
                    idempotency_key=key,
                )
        return accepted(job)


class JobView(APIView):
    @extend_schema(responses=JobDetailSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        return Response(JobDetailSerializer(access.job_to_view_by_id(request.user, job_id)).data)


class CancelView(APIView):
    class CancelRequest(serializers.Serializer[Any]):
        force = serializers.BooleanField(default=False)

    @extend_schema(request=CancelRequest, responses=JobDetailSerializer)
    def post(self, request: Request, job_id: UUID) -> Response:
        """Cancel at once when QUEUED, otherwise ask the runner to stop; `force` fences the attempt now."""
        job = access.job_to_cancel_by_id(request.user, job_id)
        force = validate_body(self.CancelRequest(data=request.data))["force"]
        services.cancel_job(job=job, requested_by=person(request), force=force)
        return Response(JobDetailSerializer(access.job_to_view_by_id(request.user, job_id)).data)


class RetryView(APIView):
    @extend_schema(request=None, responses={202: JobDetailSerializer})
    def post(self, request: Request, job_id: UUID) -> Response:
        """Queue a new job with the same snapshot, continuing from the stored state."""
        job = access.job_to_retry_by_id(request.user, job_id)
        return accepted(services.retry_job(job=job, requested_by=person(request)))


class AttemptsView(APIView):
    @extend_schema(responses=AttemptSerializer(many=True))
    def get(self, request: Request, job_id: UUID) -> Response:
        job = access.job_to_view_by_id(request.user, job_id)
        return Response({"data": AttemptSerializer(selectors.attempts_of(job), many=True).data})


class EventsView(APIView):
    @extend_schema(responses=EventSerializer(many=True))
    def get(self, request: Request, job_id: UUID) -> Response:
        """List everything that people, runners and the console did to the job, oldest first."""
        job = access.job_to_view_by_id(request.user, job_id)
        events = AuditEvent.objects.filter(target_id=job.pk).order_by("id")
        return Response({"data": EventSerializer(events, many=True).data})


class LogsView(APIView):
    class LogQuery(serializers.Serializer[Any]):
        after = serializers.IntegerField(min_value=0, default=0, help_text="Only lines after this number.")
        limit = serializers.IntegerField(min_value=1, max_value=5_000, default=500)
        level = serializers.ChoiceField(
            choices=list(LEVEL_BITS), required=False, help_text="This level or a more severe one."
        )
        format = serializers.ChoiceField(choices=["json", "text", "stream"], default="json")

    @extend_schema(parameters=[LogQuery], responses=LogPageSerializer)
    def get(self, request: Request, job_id: UUID) -> HttpResponseBase:
        """Return a page of lines, the whole log as text, or a stream of lines as they come (NDJSON)."""
        query = validate_body(self.LogQuery(data=request.query_params))
        job = access.job_to_view_by_id(request.user, job_id)
        match query["format"]:
            case "text":
                return plain_text(log_selectors.log_text(job))
            case "stream":
                return _ndjson(stream_log(job.pk, after=query["after"]))
        lines = log_selectors.log_lines(
            job, after=query["after"], limit=query["limit"], level=query.get("level")
        )
        return Response(
            {
                "data": [{"seq": seq, **line} for seq, line in lines],
                "last_seq": log_selectors.last_log_seq(job),
                "completeness": log_selectors.log_completeness(job),
            }
        )


class LogSearchView(APIView):
    class SearchQuery(serializers.Serializer[Any]):
        q = serializers.CharField(max_length=200, trim_whitespace=False, help_text="Case is ignored.")
        limit = serializers.IntegerField(min_value=1, max_value=10_000, default=5_000)

    @extend_schema(parameters=[SearchQuery], responses={200: dict[str, Any]})
    def get(self, request: Request, job_id: UUID) -> Response:
        """Find the numbers of the lines with this text, over the whole log."""
        query = validate_body(self.SearchQuery(data=request.query_params))
        job = access.job_to_view_by_id(request.user, job_id)
        matches = log_selectors.search_log(job, query["q"], limit=query["limit"])
        return Response({"data": matches.seqs, "total": matches.total})


class LogEventsView(APIView):
    class EventsQuery(serializers.Serializer[Any]):
        before = serializers.IntegerField(min_value=0, help_text="Lines up to this number.")

    @extend_schema(parameters=[EventsQuery], responses={200: dict[str, Any]})
    def get(self, request: Request, job_id: UUID) -> HttpResponse:
        """List the lines that carry more than text: phases, resources, diagnostics."""
        query = validate_body(self.EventsQuery(data=request.query_params))
        job = access.job_to_view_by_id(request.user, job_id)
        events = log_selectors.log_events(job, before=query["before"])
        body = orjson.dumps({"data": [{"seq": seq, **line} for seq, line in events]})
        return HttpResponse(body, content_type="application/json")


class ErroredStatesView(APIView):
    @extend_schema(responses=ErroredStateSerializer(many=True))
    def get(self, request: Request, job_id: UUID) -> Response:
        """List the states that attempts of the job could not save: push them before anything else."""
        job = access.job_to_view_by_id(request.user, job_id)
        return Response({"data": ErroredStateSerializer(errored_states_of(job), many=True).data})


class ErroredStateView(APIView):
    @extend_schema(responses={(200, "application/octet-stream"): bytes})
    def get(self, request: Request, job_id: UUID, claim_id: UUID) -> HttpResponse:
        """Download the file for `terraform state push`. It may hold secrets: operators only."""
        job = access.job_to_read_secrets_by_id(request.user, job_id)
        body = open_errored_state(job=job, claim_id=claim_id, opened_by=person(request))
        return HttpResponse(
            body,
            content_type="application/octet-stream",
            headers={"Content-Disposition": 'attachment; filename="errored.tfstate"'},
        )


class QueueDepthView(APIView):
    @extend_schema(responses=PoolDepthSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Count the jobs that a runner could start now, per pool, for an autoscaler."""
        organization = organization_to_view(request.user, slug)
        depths = pool_depths(organization_id=organization.pk)
        return Response({"data": [_as_dict(depth) for depth in depths]})


def accepted(job: Job) -> Response:
    """Answer 202 with the job's address."""
    location = reverse("api-job", args=[job.pk])
    return Response(JobDetailSerializer(job).data, status=202, headers={"Location": location})


def idempotency_key(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 0 < len(key) <= 200:
        raise BadInput("Idempotency-Key: between 1 and 200 characters")
    return key


def _visible(request: Request, query: dict[str, Any]) -> QuerySet[Job]:
    organizations = memberships_of(request.user).values("organization_id")
    jobs = Job.objects.filter(organization_id__in=organizations)
    if "organization" in query:
        jobs = jobs.filter(organization=organization_to_view(request.user, query.pop("organization")))
    return jobs.filter(**query)


def _ndjson(frames: AsyncIterator[dict[str, Any]]) -> StreamingHttpResponse:
    async def encode_frames() -> AsyncIterator[bytes]:
        async for frame in frames:
            yield orjson.dumps(frame) + b"\n"

    return StreamingHttpResponse(encode_frames(), content_type="application/x-ndjson")


def _as_dict(depth: Any) -> dict[str, Any]:
    return {name: getattr(depth, name) for name in depth.__slots__}
