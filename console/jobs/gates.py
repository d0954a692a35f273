"""Gates: preconditions of a job that changes infrastructure.

A spec names its gates as a list of objects, each with a `kind`:

    {"kind": "job_success", "job_type": "CONNECTION_TEST", "max_age_days": 7}
    {"kind": "approval", "count": 1}           # checked by `console/plans/approvals.py`

A job behind a closed gate is refused with a sentence that says which job or person can open the gate.
"""

from datetime import timedelta

from django.utils import timezone

from console.errors import GateClosed
from console.jobs.lifecycle import SUCCESS
from console.jobs.models import Job
from console.jobs.types import kind_of
from runner.protocol import JobType
from specs.models import Spec


def require_gates_open(*, spec: Spec, type: JobType) -> None:
    """Refuse a job that changes infrastructure while one of the spec's job gates is closed."""
    if not kind_of(type).changes_infrastructure:
        return
    for gate in spec.gates:
        if gate["kind"] == "job_success":
            require_job_success(
                spec=spec, type=JobType(gate["job_type"]), max_age_days=gate.get("max_age_days")
            )


def require_job_success(
    *, spec: Spec, type: JobType, snapshot_hash: str | None = None, max_age_days: int | None = None
) -> None:
    """Refuse unless a job of this type has succeeded, of this snapshot and this recently where given.

    For a Spec with a cloud identity, a CONNECTION_TEST means a test of the identity's current settings.
    """
    if type == JobType.CONNECTION_TEST and spec.identity is not None:
        return _require_passed_test(spec, max_age_days)
    jobs = Job.objects.filter(spec=spec, type=type, status=SUCCESS)
    if snapshot_hash is not None:
        jobs = jobs.filter(snapshot_hash=snapshot_hash)
    if max_age_days is not None:
        jobs = jobs.filter(finished_at__gte=timezone.now() - timedelta(days=max_age_days))
    if not jobs.exists():
        raise GateClosed(
            _describe_closed(spec, type, snapshot_hash, max_age_days),
            gate="job_success",
            required_job_type=type.value,
        )


def _require_passed_test(spec: Spec, max_age_days: int | None) -> None:
    identity = spec.identity
    assert identity is not None
    oldest = None if max_age_days is None else timezone.now() - timedelta(days=max_age_days)
    if identity.test_passed and identity.tested_at and (oldest is None or identity.tested_at >= oldest):
        return
    recently = f" in the last {max_age_days} days" if max_age_days is not None else ""
    raise GateClosed(
        f"{spec.name} needs a CONNECTION_TEST of its cloud identity {identity.name} that passed{recently}. "
        "Test it on the identity's page, then try again.",
        gate="job_success",
        required_job_type=JobType.CONNECTION_TEST.value,
        identity_id=str(identity.pk),
    )


def _describe_closed(spec: Spec, type: JobType, snapshot_hash: str | None, max_age_days: int | None) -> str:
    recently = f" in the last {max_age_days} days" if max_age_days is not None else ""
    same = " of this configuration" if snapshot_hash is not None else ""
    return f"{spec.name} needs a successful {type}{same}{recently}. Run {type}, then try again."
