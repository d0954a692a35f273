"""A job as one document, to keep or to hand on: facts, attempts, audit trail and result, secrets aside."""

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

#: A trail is as long as a job had attempts, cancels and downloads.
MAX_EVENTS = 10_000


def exported(job: Job) -> bytes:
    """What the API says about the job in several answers, as one."""
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
