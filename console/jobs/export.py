"""A job as one document, to archive or to share: attempts, audit trail and result, without secrets."""

from typing import Any

import orjson
from django.urls import reverse

from console.jobs.errored_states import errored_states_of
from console.jobs.log.selectors import last_log_seq, log_completeness
from console.jobs.models import Job
from console.jobs.selectors import attempts_of, trail_of
from console.jobs.serializers import (
    AttemptSerializer,
    ErroredStateSerializer,
    EventSerializer,
    JobDetailSerializer,
)

#: An audit trail grows with each attempt, cancel and download.
MAX_EVENTS = 10_000


def export_job(job: Job) -> bytes:
    """Return the API's answers about the job as one JSON document."""
    attempts = attempts_of(job)
    document: dict[str, Any] = {
        "job": JobDetailSerializer(job).data,
        "attempts": AttemptSerializer(attempts, many=True).data,
        "errored_states": ErroredStateSerializer(errored_states_of(job), many=True).data,
        "events": EventSerializer(trail_of(job, limit=MAX_EVENTS), many=True).data,
        "log": {
            "url": reverse("api-job-logs", args=[job.pk]),
            "last_seq": last_log_seq(job),
            "completeness": log_completeness(job, attempts),
        },
    }
    return orjson.dumps(document, default=str, option=orjson.OPT_INDENT_2)
