"""Gates: what must have happened before a job that changes infrastructure may be queued.

A spec names its gates as a list of objects, each with a `kind`:

    {"kind": "job_success", "job_type": "CONNECTION_TEST", "max_age_days": 7}
    {"kind": "approval", "count": 1}           # kept by the plans room

A closed gate is refused with the sentence that says which job or person can open it.
"""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from console.errors import BadInput, GateClosed
from console.jobs.lifecycle import POLICIES, SUCCESS
from console.jobs.models import Job
from runner.protocol import JobType
from specs.models import Spec

KINDS = ("job_success", "approval")


def validate_gates(gates: Any) -> list[dict[str, Any]]:
    """The gates as they may be stored on a spec, or a refusal that names the entry."""
    if not isinstance(gates, list):
        raise BadInput("gates: expected a list")
    for index, gate in enumerate(gates):
        if not isinstance(gate, dict) or gate.get("kind") not in KINDS:
            raise BadInput(f"gates[{index}].kind: expected one of {', '.join(KINDS)}")
        if gate["kind"] == "job_success" and gate.get("job_type") not in list(JobType):
            raise BadInput(f"gates[{index}].job_type: expected a job type, such as CONNECTION_TEST")
        _positive(gate, index, "max_age_days")
        _positive(gate, index, "count")
    return gates


def require_gates_open(*, spec: Spec, type: JobType) -> None:
    """Refuse a job that changes infrastructure while one of the spec's job gates is closed."""
    if not POLICIES[type].changes_infrastructure:
        return
    for gate in spec.gates:
        if gate["kind"] == "job_success":
            require_job_success(
                spec=spec, type=JobType(gate["job_type"]), max_age_days=gate.get("max_age_days")
            )


def require_job_success(
    *, spec: Spec, type: JobType, snapshot_hash: str | None = None, max_age_days: int | None = None
) -> None:
    """Refuse unless a job of this type has succeeded: of this snapshot, and lately, where that is asked.

    A CONNECTION_TEST is of the spec's identity, where it has one: of its settings as they are now.
    """
    if type == JobType.CONNECTION_TEST and spec.identity is not None:
        return _require_tested(spec, max_age_days)
    jobs = Job.objects.filter(spec=spec, type=type, status=SUCCESS)
    if snapshot_hash is not None:
        jobs = jobs.filter(snapshot_hash=snapshot_hash)
    if max_age_days is not None:
        jobs = jobs.filter(finished_at__gte=timezone.now() - timedelta(days=max_age_days))
    if not jobs.exists():
        raise GateClosed(
            _closed(spec, type, snapshot_hash, max_age_days), gate="job_success", required_job_type=type.value
        )


def _require_tested(spec: Spec, max_age_days: int | None) -> None:
    identity = spec.identity
    assert identity is not None
    oldest = None if max_age_days is None else timezone.now() - timedelta(days=max_age_days)
    if identity.test_passed and identity.tested_at and (oldest is None or identity.tested_at >= oldest):
        return
    lately = f" in the last {max_age_days} days" if max_age_days is not None else ""
    raise GateClosed(
        f"{spec.name} needs a CONNECTION_TEST of its cloud identity {identity.name} that passed{lately}. "
        "Test it on the identity's page, then ask again.",
        gate="job_success",
        required_job_type=JobType.CONNECTION_TEST.value,
        identity_id=str(identity.pk),
    )


def _closed(spec: Spec, type: JobType, snapshot_hash: str | None, max_age_days: int | None) -> str:
    lately = f" in the last {max_age_days} days" if max_age_days is not None else ""
    same = " of this configuration" if snapshot_hash is not None else ""
    return f"{spec.name} needs a successful {type}{same}{lately}. Run {type}, then ask again."


def _positive(gate: dict[str, Any], index: int, name: str) -> None:
    value = gate.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise BadInput(f"gates[{index}].{name}: expected a whole number from 1")
