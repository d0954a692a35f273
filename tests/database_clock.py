"""Moving the database's clock for one row, since only that clock decides: no test waits for time to pass."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Now

from console.janitor.models import Watch
from console.jobs.models import Job, JobClaim
from console.live.models import ConsoleBeat
from console.runners.models import Runner

LEASE = timedelta(seconds=120)


def let_lease_run_out(job: Job | UUID | str) -> None:
    """Move the runner's last heartbeat back by a lease and a second."""
    silence = LEASE + timedelta(seconds=1)
    JobClaim.objects.filter(job_id=_id(job)).update(
        heartbeat_at=Now() - silence, expires_at=Now() - timedelta(seconds=1)
    )


def let_time_pass_since_claim(job: Job, passed: timedelta) -> None:
    Job.objects.filter(pk=job.pk).update(claimed_at=Now() - passed)


def let_retry_wait_pass(job: Job | UUID | str) -> None:
    Job.objects.filter(pk=_id(job)).update(run_after=Now())


def let_runner_be_silent(runner: Runner, silence: timedelta) -> None:
    Runner.objects.filter(pk=runner.pk).update(last_contact_at=Now() - silence)
    JobClaim.objects.filter(runner=runner).update(heartbeat_at=Now() - silence)


def finish_long_ago(job: Job, passed: timedelta) -> None:
    Job.objects.filter(pk=job.pk).update(finished_at=F("finished_at") - passed)


def a_console_has_been_serving() -> None:
    """Record a janitor's recent pass and a console's beat, so that no grace period applies."""
    ConsoleBeat.objects.create(beat_at=Now())
    Watch.objects.update_or_create(
        pk=1, defaults={"looked_at": Now(), "patient_until": Now() - timedelta(seconds=1)}
    )


def _id(job: Job | UUID | str) -> UUID | str:
    return job.pk if isinstance(job, Job) else job
